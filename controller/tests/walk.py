"""Walks packets over route entries in plain Python: an independent reading of what the entries do."""

from ipaddress import IPv4Address, IPv4Network

from mininet_topos.topology import Topology


def lookup(entries, address):
    """The members (src_mac, dst_mac, port) of the longest matching prefix, or none."""
    best, members = -1, []
    for entry in entries:
        if entry.table_id != "ipv4_lpm":
            continue
        value, length = entry.match["hdr.ipv4.dst_addr"]
        if length > best and IPv4Address(address) in IPv4Network((value, length)):
            best, members = length, [action.args for _, action in entry.action.action_set]
    return members


def all_walks(topology: Topology, entries, src: str, dst: str):
    """Every path a packet may take, as tuples of node names; asserts MACs on the way and that no walk is longer than
    there are switches."""
    destination = topology.node(dst).address
    first = topology.host_port(src).node.name
    done, open_walks = [], [(first,)]
    while open_walks:
        walk = open_walks.pop()
        assert len(walk) <= len(topology.switches), f"loop: {walk}"
        members = lookup(entries[walk[-1]], destination)
        if not members:
            done.append((*walk, None))
        for member in members:
            port = member["port"]
            assert member["src_mac"] == topology.mac(walk[-1], port)
            (next_hop,) = [n for n in topology.neighbors(walk[-1]) if n.port == port]
            assert member["dst_mac"] == topology.mac(next_hop.node.name, next_hop.node_port)
            if next_hop.node.is_host:
                done.append((*walk, next_hop.node.name))
            else:
                open_walks.append((*walk, next_hop.node.name))
    return done
