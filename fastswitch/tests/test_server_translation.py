"""`@p4runtime_translation`: what the controller calls a port or a VRF, and the bits that packets have for it."""

import pytest
from finsy.proto import p4r, rpc_code

from fastswitch.tests.server_kit import (
    DATA,
    INSERT,
    exact,
    insert,
    names,
    new_state,
    optional,
    read,
    refused,
    update,
)

TRANSLATED = DATA / "translated.p4"


@pytest.fixture(name="n")
def _names():
    return names(TRANSLATED)


@pytest.fixture(name="state")
def _state():
    return new_state(source=TRANSLATED)


def in_engine(state, table):
    index = next(t.index for t in state.program.code.tables if t.name == f"ingress.{table}")
    return list(state.engine.entries[index].values())


def test_names_are_numbers_in_the_data_plane(state, n):
    numbered = n.entry("vrf_of_port", exact(b"7"), action=n.table_action("set_vrf", b"\x05"))
    named = n.entry("vrf_of_port", exact(b"Ethernet1/1"), action=n.table_action("set_vrf", b"\0\0\x0f\xff"))
    state.write(insert(numbered))
    state.write(insert(named))
    (seven, five), (other, vrf) = [(key[0], target[2]) for key, target in in_engine(state, "vrf_of_port")]
    assert (seven, five, vrf) == (b"\0\x07", b"\0\x05", b"\x0f\xff")
    assert len(other) == 2 and other != seven
    found = read(state, table_entry=p4r.TableEntry(table_id=n.ids["vrf_of_port"]))
    assert [entry.match[0].exact.value for entry in found] == [b"7", b"Ethernet1/1"]
    assert [entry.action.action.params[0].value for entry in found] == [b"\x05", b"\x0f\xff"]


def test_one_name_is_one_number_everywhere(state, n):
    entry = n.entry("vrf_of_port", exact(b"uplink"), action=n.table_action("set_vrf", b"\x01"))
    state.write(insert(entry))
    action = n.table_action("forward", b"uplink")
    state.write(insert(n.entry("port_of_vrf", exact(b"\x01"), optional(b"uplink"), priority=1, action=action)))
    ((key, target),) = in_engine(state, "port_of_vrf")
    assert key[0] == b"\0\x01" + target[2]
    number = int.from_bytes(target[2], "big")
    header = (number << 7 | 3).to_bytes(2, "big")  # nine bits of port, seven of reason
    packet = state.packet_in.decode(header + b"frame")
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"uplink"), (2, b"\x03")]
    assert packet.payload == b"frame"
    out = p4r.PacketOut(payload=b"frame", metadata=[p4r.PacketMetadata(metadata_id=2, value=b"uplink")])
    assert state.packet_out.encode(out) == target[2] + b"frame"
    assert state.packet_in.decode(b"\x02\x00").metadata[0].value == b"4"  # a port nobody named


def test_digests_have_the_controllers_form(state, n):
    config = p4r.DigestEntry.Config(max_list_size=1)
    state.write(update(INSERT, digest_entry=p4r.DigestEntry(digest_id=n.ids["seen_t"], config=config)))
    sample = b"\0\x09" + b"\x0a\xbc" + b"\0\0\0\0\0\x01"  # as the engine sends it: whole bytes of 9, 12 and 48 bits
    (data,) = state.digests[n.ids["seen_t"]].sample(sample, 0).data
    assert [member.bitstring for member in data.struct.members] == [b"9", b"\x0a\xbc", b"\x01"]


def test_what_fits_the_controller_only_is_refused(state, n):
    with refused(rpc_code.INVALID_ARGUMENT, "parameter 'vrf' of 'ingress.set_vrf': value 0x1000 is out of range of 12"):
        state.write(insert(n.entry("vrf_of_port", exact(b"1"), action=n.table_action("set_vrf", b"\x10\0"))))
    with refused(rpc_code.INVALID_ARGUMENT, "is out of range of 32 bits"):
        state.write(insert(n.entry("vrf_of_port", exact(b"1"), action=n.table_action("set_vrf", b"\1" + bytes(4)))))
    with refused(rpc_code.INVALID_ARGUMENT, "match field 'meta.port': the name is empty"):
        state.write(insert(n.entry("vrf_of_port", exact(b""), action=n.table_action("set_vrf", b"\1"))))
