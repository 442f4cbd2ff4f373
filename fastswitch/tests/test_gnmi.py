"""gNMI beside P4Runtime, asked by finsy's client: port states, their changes, and a switch that loses its power."""

import contextlib
import json
import socket

import finsy as fy
import pytest
from finsy.gnmiclient import GNMIClientError
from finsy.proto import U128, gnmi, gnmi_grpc, p4r

from fastswitch.control import Client, ControlError
from fastswitch.tests.server_kit import ECMP, compiled
from fastswitch.tests.test_daemon_run import running

IFINDEX = fy.GNMIPath("interfaces/interface[name=*]/state/ifindex")
STATUS = fy.GNMIPath("interfaces/interface[name=*]/state/oper-status")


@contextlib.contextmanager
def pair(folder):
    """Two switches with two links between them: the fabric's control client, and the addresses of both."""
    with socket.socket() as first, socket.socket() as second:
        for probe in (first, second):
            probe.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in (first, second)]
    spec = {
        "switches": [{"name": f"s{n}", "device_id": n, "grpc_addr": addresses[n - 1]} for n in (1, 2)],
        "links": [{"a": ["s1", port], "b": ["s2", 5 + port]} for port in (1, 2)],
        "control": str(folder / "control.sock"),
    }
    (folder / "fabric.json").write_text(json.dumps(spec))
    with running("--fabric", folder / "fabric.json"), Client(folder / "control.sock") as fabric:
        yield fabric, addresses


def target(switch):
    return fy.GNMIPath(gnmi.Path(target=switch))


async def statuses(updates, count):
    """The next `count` changes of port states, as {name: status}."""
    found = {}
    async for update in updates:
        found[update.path["name"]] = update.value
        if len(found) == count:
            return found
    raise AssertionError(f"the stream ended after {found}")


async def test_ports_and_their_changes(tmp_path):
    with pair(tmp_path) as (fabric, addresses):
        async with fy.GNMIClient(addresses[0]) as client:
            found = await client.get(IFINDEX, prefix=target("s2"))
            assert {update.path["name"]: update.value for update in found} == {"s2-eth6": 6, "s2-eth7": 7}
            both = [client.subscribe(prefix=target(switch)) for switch in ("s1", "s2")]
            for subscription, ports in zip(both, ([1, 2], [6, 7]), strict=True):
                subscription.on_change(STATUS)
                first = {u.path["name"]: u.value async for u in subscription.synchronize()}
                assert set(first.values()) == {"UP"} and len(first) == len(ports)
            for up, text in ((False, "DOWN"), (True, "UP")):
                fabric.link_set("s1:2", up=up)
                assert await statuses(both[0].updates(), 1) == {"s1-eth2": text}
                assert await statuses(both[1].updates(), 1) == {"s2-eth7": text}


async def test_a_switch_without_power(tmp_path):
    p4info, json_text = compiled(ECMP)
    (tmp_path / "p4info.txtpb").write_text(str(p4info))
    (tmp_path / "program.json").write_bytes(json_text)
    options = fy.SwitchOptions(p4info=tmp_path / "p4info.txtpb", p4blob=tmp_path / "program.json")
    with pair(tmp_path) as (fabric, addresses):
        async with fy.GNMIClient(addresses[0]) as client:
            subscription = client.subscribe(prefix=target("s1"))
            subscription.on_change(STATUS)
            assert [u async for u in subscription.synchronize()]
            async with fy.Switch("s2", addresses[1], options(device_id=2)):
                pass
            assert [one["has_config"] for one in fabric.status()["switches"]] == [False, True]
            fabric.switch_set("s2", up=False)
            assert await statuses(subscription.updates(), 2) == {"s1-eth1": "DOWN", "s1-eth2": "DOWN"}
            with pytest.raises(GNMIClientError, match="switch s2 is switched off"):
                await client.get(IFINDEX, prefix=target("s2"))
            with pytest.raises(fy.P4ClientError, match="switch s2 is switched off"):
                async with fy.Switch("s2", addresses[1], options(device_id=2)):
                    pass
            fabric.switch_set("s2", up=True)
            assert [(s["up"], s["has_config"]) for s in fabric.status()["switches"]] == [(True, False)] * 2
            # Its links come up with its program, and not before.
            assert not any(link["up"] for link in fabric.links())
            async with fy.Switch("s2", addresses[1], options(device_id=2)):
                assert await statuses(subscription.updates(), 2) == {"s1-eth1": "UP", "s1-eth2": "UP"}
        for arguments, text in (
            ({"switch": "s3", "up": True}, "no switch is named 's3'; known are s1, s2"),
            ({"switch": "s1", "up": 1}, "up must be true or false"),
        ):
            with pytest.raises(ControlError, match=text):
                fabric.request("switch_set", **arguments)


async def test_open_streams_end_with_the_power(tmp_path):
    with pair(tmp_path) as (fabric, addresses):
        client = fy.P4Client(addresses[0], wait_for_ready=False)
        async with client:
            await client.send(
                p4r.StreamMessageRequest(
                    arbitration=p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
                )
            )
            assert (await client.receive()).HasField("arbitration")
            stub = gnmi_grpc.gNMIStub(client.channel)
            call = stub.Subscribe()
            request = gnmi.SubscribeRequest(subscribe=gnmi.SubscriptionList(prefix=gnmi.Path(target="s1")))
            await call.write(request)
            assert (await call.read()).HasField("update") and (await call.read()).sync_response
            fabric.switch_set("s1", up=False)
            with pytest.raises(fy.P4ClientError, match="switch s1 is switched off"):
                await client.receive()
            assert "switched off" in await call.details()


@pytest.mark.parametrize(
    ("prefix", "path", "text"),
    [
        (None, STATUS, r"this server has several switches: prefix.target must name one of s1, s2"),
        ("s9", STATUS, r"no switch is named 's9'; this server has s1, s2"),
        ("s1", fy.GNMIPath("interfaces/interface[name=s2-eth6]"), r"switch s1 has no interface 's2-eth6'; it has s1-"),
        ("s1", fy.GNMIPath("interfaces/interface/state/mtu"), r"no path 'interfaces/interface/state/mtu'; there are"),
        ("s1", fy.GNMIPath("system/clock"), r"no path 'system/clock'"),
    ],
)
async def test_what_is_not_there_is_refused(tmp_path, prefix, path, text):
    with pair(tmp_path) as (_, addresses):
        async with fy.GNMIClient(addresses[0]) as client:
            with pytest.raises(GNMIClientError, match=text):
                await client.get(path, prefix=target(prefix) if prefix else None)
            for sample in (False, True) if prefix == "s1" and path.last == "mtu" else ():
                subscription = client.subscribe(prefix=target("s1"))
                if sample:
                    subscription.sample(STATUS, sample_interval=10**9)
                else:
                    subscription.on_change(path)
                with pytest.raises(GNMIClientError, match="streams of samples" if sample else text):
                    _ = [u async for u in subscription.synchronize()]


async def test_finsy_sees_the_ports_of_a_single_switch(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    p4info, json_text = compiled(ECMP)
    (tmp_path / "p4info.txtpb").write_text(str(p4info))
    (tmp_path / "program.json").write_bytes(json_text)
    options = fy.SwitchOptions(p4info=tmp_path / "p4info.txtpb", p4blob=tmp_path / "program.json", device_id=1)
    with running("--device-id", "1", "--no-p4", "--", "--grpc-server-addr", address):
        async with fy.Switch("s1", address, options) as switch:
            assert switch.gnmi_client is not None and len(switch.ports) == 0
