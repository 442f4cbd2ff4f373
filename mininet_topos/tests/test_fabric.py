"""What the switch processes are told: fabric.json of plait-switch, and BMv2's command lines."""

import json

from controller.targets import targets_of
from mininet_topos.fabric import Bmv2Switches, PlaitSwitches, Wiring, queue_packets
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell


def _plait(tmp_path, links, topology=None):
    topology = topology or dumbbell(delay_ns=1001)
    return PlaitSwitches(Wiring(topology, links), targets_of(topology), "lab", tmp_path, seed=7)


def test_links_in_memory_are_links_and_hosts_are_interfaces(tmp_path):
    config = _plait(tmp_path, "memory").config()
    assert config["seed"] == 7
    assert config["switches"][1] == {
        "name": "s2",
        "device_id": 2,
        "grpc_addr": "127.0.0.1:9560",
        "priority_queues": 8,
        "cpu_port": 510,
        "drop_port": 511,
    }
    assert config["links"] == [
        {"a": ["s1", 3], "b": ["s2", 3], "rate_bps": 10**9, "delay_ns": 1001, "loss": 0.0, "queue_packets": 64}
    ]
    assert [(i["switch"], i["port"], i["interface"]) for i in config["interfaces"]] == [
        ("s1", 1, "s1-eth1"),
        ("s1", 2, "s1-eth2"),
        ("s2", 1, "s2-eth1"),
        ("s2", 2, "s2-eth2"),
    ]
    assert config["control"] == str(tmp_path / "fabric.sock")
    json.dumps(config)


def test_veth_links_share_their_delay_between_their_ends(tmp_path):
    config = _plait(tmp_path, "veth").config()
    assert config["links"] == []
    ends = [i for i in config["interfaces"] if i["port"] == 3]
    assert [end["interface"] for end in ends] == ["s1-eth3", "s2-eth3"]
    assert sum(end["delay_ns"] for end in ends) == 1001


def test_veth_links_share_their_loss_between_their_ends(tmp_path):
    topology = fattree(2, 10**9, 1000, loss=0.19)
    config = _plait(tmp_path, "veth", topology).config()
    losses = {i["loss"] for i in config["interfaces"] if i["switch"] == "s1"}
    assert len(losses) == 1 and abs((1 - losses.pop()) ** 2 - 0.81) < 1e-9


def test_queues_hold_several_bandwidth_delay_products():
    link = dumbbell().links[0]
    assert queue_packets(link, 1000, 1500) == 64
    # 10^9 bits/s * 10 ms / 12000 bits = 834 packets
    assert queue_packets(link, 10_000_000, 1500) == 4 * 834


def test_bmv2_command_line(tmp_path):
    topology = dumbbell()
    switches = Bmv2Switches(Wiring(topology, "veth"), targets_of(topology), "lab", tmp_path)
    assert switches.arguments(1, {"--thrift-port", "--notifications-addr"}) == [
        *("simple_switch_grpc", "--no-p4", "--device-id", "2"),
        *("--thrift-port", "9091", "--notifications-addr", f"ipc://{tmp_path}/s2-notifications.ipc"),
        *("-i", "1@s2-eth1", "-i", "2@s2-eth2", "-i", "3@s2-eth3"),
        *("--", "--grpc-server-addr", "127.0.0.1:9560", "--cpu-port", "510", "--drop-port", "511"),
        *("--priority-queues", "8"),
    ]
    assert switches.arguments(1, ())[4] == "-i"
