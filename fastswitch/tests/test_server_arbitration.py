"""Who is primary: election ids, roles, notifications, disconnects."""

import grpc
import pytest
from finsy.proto import U128, p4r, rpc_code, stratum
from google.protobuf.any_pb2 import Any

from fastswitch.server.arbitration import Arbiter
from fastswitch.server.errors import P4RuntimeError
from fastswitch.tests.server_kit import connected, fake_device, serving


class Session:
    """A stream as the arbiter sees it; collects what it is told."""

    def __init__(self, arbiter):
        self.arbiter = arbiter
        self.controller = None
        self.told = []

    def ask(self, election_id=None, role=None):
        request = p4r.MasterArbitrationUpdate(device_id=1, role=role)
        if election_id is not None:
            request.election_id.CopyFrom(U128.encode(election_id))
        self.controller = self.arbiter.update(self.controller, request, lambda m: self.told.append(m.arbitration))
        return self

    def leave(self):
        self.arbiter.leave(self.controller)

    def news(self):
        """(code, election id or None) of every message since the last call."""
        news = [(m.status.code, U128.decode(m.election_id) if m.HasField("election_id") else None) for m in self.told]
        self.told.clear()
        return news


OK, BACKUP, NOBODY = rpc_code.OK, rpc_code.ALREADY_EXISTS, rpc_code.NOT_FOUND


def uint128(value):
    return U128.encode(value)


def test_the_first_controller_is_primary_and_a_lower_one_its_backup():
    arbiter = Arbiter(1)
    first = Session(arbiter).ask(10)
    assert first.news() == [(OK, 10)]
    second = Session(arbiter).ask(5)
    assert second.news() == [(BACKUP, 10)]
    assert first.news() == []


def test_a_higher_id_takes_over_and_everybody_hears():
    arbiter = Arbiter(1)
    first, backup = Session(arbiter).ask(10), Session(arbiter).ask(5)
    first.news(), backup.news()
    third = Session(arbiter).ask(1 << 100)
    assert (first.news(), backup.news(), third.news()) == ([(BACKUP, 1 << 100)], [(BACKUP, 1 << 100)], [(OK, 1 << 100)])


def test_a_duplicate_id_is_refused_with_the_words_clients_look_for():
    arbiter = Arbiter(1)
    Session(arbiter).ask(10)
    with pytest.raises(P4RuntimeError, match=r"(?i)election id .*\b(?:used|exists)\b") as caught:
        Session(arbiter).ask(10)
    assert caught.value.code == rpc_code.INVALID_ARGUMENT


def test_a_primary_that_repeats_its_id_is_confirmed_to_everybody():
    arbiter = Arbiter(1)
    primary, backup = Session(arbiter).ask(10), Session(arbiter).ask(5)
    primary.news(), backup.news()
    assert primary.ask(10).news() == [(OK, 10)]
    assert backup.news() == [(BACKUP, 10)]
    assert backup.ask(5).news() == [(BACKUP, 10)]
    assert primary.news() == []


def test_when_the_primary_leaves_nobody_is_until_somebody_asks():
    arbiter = Arbiter(1)
    primary, backup = Session(arbiter).ask(10), Session(arbiter).ask(5)
    backup.news()
    primary.leave()
    assert backup.news() == [(NOBODY, 10)]
    with pytest.raises(P4RuntimeError, match="Not primary: nobody is"):
        arbiter.check_write("", uint128(5))
    assert backup.ask(6).news() == [(NOBODY, 10)]  # below the highest ever seen
    assert backup.ask(10).news() == [(OK, 10)]
    arbiter.check_write("", uint128(10))


def test_a_primary_can_step_down():
    arbiter = Arbiter(1)
    primary, backup = Session(arbiter).ask(10), Session(arbiter).ask(5)
    primary.news(), backup.news()
    primary.ask(3)
    assert (primary.news(), backup.news()) == ([(NOBODY, 10)], [(NOBODY, 10)])


def test_after_the_last_controller_a_lower_id_may_start_again():
    arbiter = Arbiter(1)
    Session(arbiter).ask(100).leave()
    assert Session(arbiter).ask(1).news() == [(OK, 1)]


def test_id_zero_can_be_primary_but_no_id_cannot():
    arbiter = Arbiter(1)
    legacy = Session(arbiter).ask()
    assert legacy.news() == [(NOBODY, None)]
    assert arbiter.listeners() == [legacy.controller]  # old PTF tests get their packets all the same
    zero = Session(arbiter).ask(0)
    assert zero.news() == [(OK, 0)]
    assert legacy.news() == [(BACKUP, 0)]
    assert arbiter.listeners() == [zero.controller]


def test_writes_need_the_primarys_id_unless_there_is_none():
    arbiter = Arbiter(1)
    arbiter.check_write("", None)
    Session(arbiter).ask(10), Session(arbiter).ask(5)
    arbiter.check_write("", uint128(10))
    for election_id in (None, uint128(5), uint128(11)):
        with pytest.raises(P4RuntimeError, match="Not primary") as caught:
            arbiter.check_write("", election_id)
        assert caught.value.code == rpc_code.PERMISSION_DENIED
    with pytest.raises(P4RuntimeError, match="no controller has opened a stream with role 'x'") as caught:
        arbiter.check_write("x", uint128(10))
    assert caught.value.code == rpc_code.NOT_FOUND


def test_roles_have_their_own_elections():
    arbiter = Arbiter(1)
    everyone = Session(arbiter).ask(10)
    role = p4r.Role(name="monitor")
    monitor = Session(arbiter).ask(10, role)
    assert (everyone.news(), monitor.news()) == ([(OK, 10)], [(OK, 10)])
    assert {c.role.name for c in arbiter.listeners()} == {"", "monitor"}
    with pytest.raises(P4RuntimeError, match="this stream has role 'monitor', not ''") as caught:
        monitor.ask(11)
    assert caught.value.code == rpc_code.FAILED_PRECONDITION


def test_role_configs_are_kept_and_limit():
    arbiter = Arbiter(1)
    packed = Any()
    packed.Pack(stratum.P4RoleConfig(exclusive_p4_ids=[7], shared_p4_ids=[8], receives_packet_ins=False))
    session = Session(arbiter).ask(1, p4r.Role(name="r", config=packed))
    assert session.told[0].role.config == packed
    role = arbiter.check_write("r", uint128(1))
    assert (role.may_write(7), role.may_write(8), role.may_write(9)) == (True, True, False)
    assert not role.receives(p4r.PacketIn())
    unknown = Any()
    unknown.Pack(p4r.Index())
    with pytest.raises(P4RuntimeError, match="role config of type .*Index' is unknown") as caught:
        Session(arbiter).ask(1, p4r.Role(name="q", config=unknown))
    assert caught.value.code == rpc_code.INVALID_ARGUMENT


def role_with(name, **limits):
    packed = Any()
    packed.Pack(stratum.P4RoleConfig(**limits))
    return p4r.Role(name=name, config=packed)


def test_what_is_exclusive_to_a_role_no_other_role_may_claim():
    arbiter = Arbiter(1)
    first = Session(arbiter).ask(1, role_with("a", exclusive_p4_ids=[7, 8]))
    with pytest.raises(P4RuntimeError, match="role config of 'b': 0x00000008 is in the exclusive_p4_ids of role 'a'"):
        Session(arbiter).ask(1, role_with("b", exclusive_p4_ids=[8, 9]))
    Session(arbiter).ask(1, role_with("b", exclusive_p4_ids=[9], shared_p4_ids=[5]))
    first.ask(2, role_with("a", exclusive_p4_ids=[7], shared_p4_ids=[5]))
    Session(arbiter).ask(1, role_with("c", exclusive_p4_ids=[8]))


def test_streams_per_role_are_limited():
    arbiter = Arbiter(1)
    for number in range(64):
        Session(arbiter).ask(number)
    with pytest.raises(P4RuntimeError, match="has 64 controllers already") as caught:
        Session(arbiter).ask(64)
    assert caught.value.code == rpc_code.RESOURCE_EXHAUSTED


async def test_over_grpc_take_over_and_disconnect():
    async with serving(fake_device()) as address, connected(address) as first, connected(address) as second:
        assert (await first.arbitrate(1)).status.code == OK
        assert (await second.arbitrate(2)).status.code == OK
        assert (await first.receive()).arbitration.status.code == BACKUP
        await second.leave()
        assert (await first.receive()).arbitration.status.code == NOBODY
        assert (await first.arbitrate(2)).status.code == OK
        await first.finish()


async def test_over_grpc_refusals_end_the_stream():
    async with serving(fake_device(device_id=1), fake_device(device_id=2, name="s2")) as address:
        async with connected(address) as client, connected(address) as twin:
            await client.arbitrate(1)
            with pytest.raises(grpc.aio.AioRpcError, match="already used") as caught:
                await twin.arbitrate(1)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        async with connected(address) as client:
            with pytest.raises(grpc.aio.AioRpcError, match="no device has id 9; this server has 1, 2") as caught:
                await client.arbitrate(1, device_id=9)
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND
        async with connected(address) as client:
            await client.arbitrate(1)
            with pytest.raises(grpc.aio.AioRpcError, match="belongs to device 1, not 2") as caught:
                await client.arbitrate(1, device_id=2)
            assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        async with connected(address) as client:
            await client.send(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x")))
            with pytest.raises(grpc.aio.AioRpcError, match="first message of a stream must be an arbitration"):
                await client.receive()


async def test_a_device_is_chosen_by_its_id_on_any_port():
    one, two = fake_device(device_id=1), fake_device(device_id=2, name="s2")
    async with serving(one, two) as address, connected(address, 2) as client:
        await client.arbitrate(1)
        assert [c.election_id for c in two.arbiter.listeners()] == [1]
        assert one.arbiter.listeners() == []
        assert (await client.stub.Capabilities(p4r.CapabilitiesRequest())).p4runtime_api_version == "1.5.0"
