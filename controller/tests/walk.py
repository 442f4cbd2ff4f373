"""Walks packets over route entries in plain Python: an independent reading of what the entries do."""

from ipaddress import IPv4Address, IPv4Network

import finsy as fy

from mininet_topos.topology import Topology


def lookup(entries, address):
    """The ports of the longest matching prefix, or none."""
    best, members = -1, []
    for entry in entries:
        if entry.table_id != "ipv4_lpm":
            continue
        value, length = entry.match["hdr.ipv4.dst_addr"]
        if length > best and IPv4Address(address) in IPv4Network((value, length)):
            best, members = length, _ports(entry.action)
    return members


def _ports(action):
    if isinstance(action, fy.IndirectAction):
        assert all(watched == member.args["port"] for (_, watched), member in action.action_set)
        return [member.args["port"] for _, member in action.action_set]
    count = action.args["count"]
    packed = action.args["ports_0_7"].to_bytes(8, "little") + action.args["ports_8_15"].to_bytes(8, "little")
    assert not any(packed[count:])
    return list(packed[:count])


def all_walks(topology: Topology, entries, src: str, dst: str):
    """Every path a packet may take, as tuples of node names; asserts that no walk is longer than there are
    switches."""
    destination = topology.node(dst).address
    first = topology.host_port(src).node.name
    done, open_walks = [], [(first,)]
    while open_walks:
        walk = open_walks.pop()
        assert len(walk) <= len(topology.switches), f"loop: {walk}"
        members = lookup(entries[walk[-1]], destination)
        if not members:
            done.append((*walk, None))
        for port in members:
            (next_hop,) = [n for n in topology.neighbors(walk[-1]) if n.port == port]
            if next_hop.node.is_host:
                done.append((*walk, next_hop.node.name))
            else:
                open_walks.append((*walk, next_hop.node.name))
    return done
