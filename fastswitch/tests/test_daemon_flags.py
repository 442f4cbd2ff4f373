"""The command line of plait-switch, and fabric.json: what is accepted, and what each refusal says."""

import json
from pathlib import Path

import pytest

from fastswitch import daemon, flags
from fastswitch.config import ConfigError, load_fabric, parse_fabric


def switch_of(*argv):
    return flags.parse(list(argv)).fabric.switches[0]


def test_the_command_line_of_the_p4_tutorials():
    line = (
        "-i 1@s1-eth1 -i 2@s1-eth2 --pcap pcaps --nanolog ipc:///tmp/log --device-id 7 build/p.json --log-console "
        "--thrift-port 9090 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 510"
    )
    options = flags.parse(line.split(" "))
    switch = options.fabric.switches[0]
    assert (switch.device_id, switch.grpc_addr, switch.cpu_port) == (7, "0.0.0.0:50051", 510)
    assert switch.program == "build/p.json"
    assert [(i.port, i.interface) for i in options.fabric.interfaces] == [(1, "s1-eth1"), (2, "s1-eth2")]
    assert (options.pcap, options.log_console) == (Path("pcaps"), True)
    assert options.notes == [
        "--thrift-port is ignored: there is no Thrift server; tables are reached over P4Runtime",
        "--nanolog is ignored: there is no nanomsg event log; use --log-file",
    ]


def test_defaults_are_simple_switchs_but_on_loopback():
    switch = switch_of("--no-p4")
    assert (switch.device_id, switch.grpc_addr, switch.cpu_port) == (0, "127.0.0.1:9559", 0)
    assert (switch.drop_port, switch.priority_queues, switch.program) == (511, 1, None)


def test_target_options_stand_on_either_side_of_the_dashes():
    argv = ["--cpu-port", "255", "--drop-port", "500", "--priority-queues", "8", "--grpc-server-addr", "[::1]:1234"]
    assert switch_of("--no-p4", "--", *argv) == switch_of(*argv, "--no-p4")
    assert switch_of("--no-p4", *argv).priority_queues == 8


def test_pcap_takes_a_directory_or_none():
    assert flags.parse(["--pcap", "x", "p.json"]).pcap == Path("x")
    options = flags.parse(["--pcap", "p.json"])
    assert (options.pcap, options.fabric.switches[0].program) == (Path("."), "p.json")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "give a program.json, or --no-p4 to start without one"),
        (["--no-p4", "x.json"], "--no-p4 starts without a program, but x.json is given"),
        (["--no-p4", "-i", "eth0"], "--interface eth0: must be PORT@IFACE, such as 1@veth0"),
        (["--no-p4", "-i", "x@eth0"], "must be PORT@IFACE"),
        (["--no-p4", "-i", "1@" + "a" * 16], "is no name of a network interface"),
        (["--no-p4", "-i", "600@eth0"], "--interface: 600 is not within 0..511"),
        (["--no-p4", "-i", "511@eth0"], "--interface: port 511 is the drop port of 's0'"),
        (["--no-p4", "-i", "9@eth0", "--cpu-port", "9"], "--interface: port 9 is the CPU port of 's0'"),
        (["--no-p4", "-i", "1@a", "-i", "1@b"], r"--interface: port s0:1 is used by interfaces\[0\].port already"),
        (["--no-p4", "-i", "1@a", "-i", "2@a"], "interface a is used by"),
        (["--no-p4", "--cpu-port", "0"], "--cpu-port 0 is not possible"),
        (["--no-p4", "--cpu-port", "511"], "--cpu-port: 511 is the drop port too"),
        (["--no-p4", "--cpu-port", "x"], "argument --cpu-port: invalid int value: 'x'"),
        (["--no-p4", "--priority-queues", "9"], "--priority-queues: 9 is not within 1..8"),
        (["--no-p4", "--device-id", "-1"], "--device-id: -1 is not within 0"),
        (["--no-p4", "--grpc-server-addr", "nonsense"], "--grpc-server-addr: 'nonsense' is not HOST:PORT"),
        (["--no-p4", "--grpc-server-addr", "a:99999"], "--grpc-server-addr: 'a:99999' is not HOST:PORT"),
        (["--no-p4", "--log-level", "loud"], "invalid choice: 'loud'"),
        (["--no-p4", "--use-files", "0"], "--use-files is not supported: packets cannot be read from files"),
        (["--no-p4", "--packet-in", "ipc://x"], "--packet-in is not supported"),
        (["--no-p4", "--frobnicate"], "unrecognized arguments: --frobnicate. Try 'plait-switch --help'"),
        (["--no-p4", "--grpc-server-cert", "x"], "--grpc-server-cert needs --grpc-server-ssl"),
        (["--no-p4", "--grpc-server-ssl"], "--grpc-server-ssl needs --grpc-server-cert"),
        (
            ["--fabric", "f.json", "--device-id", "1"],
            "--device-id is for one switch: with --fabric it",
        ),
    ],
)
def test_bad_command_lines_exit_2_with_one_sentence(argv, text, capsys):
    with pytest.raises(flags.UsageError, match=text):
        flags.parse(argv)
    assert daemon.main(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("plait-switch: ") and said.count("\n") == 1


def test_certificates_must_exist(tmp_path):
    tls = ["--grpc-server-ssl", "--grpc-server-cert", str(tmp_path / "c"), "--grpc-server-key", str(tmp_path / "k")]
    with pytest.raises(flags.UsageError, match="c does not exist or is no file"):
        flags.parse(["--no-p4", *tls])
    (tmp_path / "c").touch(), (tmp_path / "k").touch()
    with pytest.raises(flags.UsageError, match="c holds no certificate that fits the key .*k"):
        flags.parse(["--no-p4", *tls])
    with pytest.raises(flags.UsageError, match="--grpc-server-with-client-auth needs --grpc-server-cacert"):
        flags.parse(["--no-p4", *tls, "--grpc-server-with-client-auth"])


def test_help_is_readable(capsys):
    with pytest.raises(SystemExit) as caught:
        flags.parse(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "takes the place of simple_switch_grpc" in text
    assert text.index("one switch:") < text.index("target options, also") < text.index("many switches:")
    assert max(map(len, text.splitlines())) <= 125


# fabric.json


def fabric(**changes):
    document = {
        "seed": 3,
        "switches": [
            {"name": "s1", "device_id": 1, "grpc_addr": "127.0.0.1:50051"},
            {"name": "s2", "device_id": 2, "grpc_addr": "127.0.0.1:50052", "cpu_port": 510},
        ],
        "links": [{"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 1000, "delay_ns": 5, "loss": 0.5, "queue_packets": 9}],
        "interfaces": [{"switch": "s1", "port": 3, "interface": "s1-eth3"}],
        "control": "/run/x.sock",
    }
    document.update(changes)
    return document


def changed(section, **changes):
    document = fabric()
    document[section][0].update(changes)
    return document


def test_a_fabric_is_read():
    spec = parse_fabric(fabric())
    assert [s.name for s in spec.switches] == ["s1", "s2"]
    (link,) = spec.links
    assert (link.a, link.b, link.rate_bps, link.loss, link.queue_packets) == (("s1", 1), ("s2", 1), 1000, 0.5, 9)
    assert (link.queue_bytes, spec.interfaces[0].rate_bps, spec.seed) == (None, 0, 3)


def without(section, name):
    document = fabric()
    del document[section][0][name]
    return document


PFC = {"headroom_bytes": 1, "xoff_bytes": 1}

BAD_FABRICS = [
    ([], "fabric: must be an object, not a list"),
    ({}, "switches: the field is missing"),
    (fabric(switches=[]), "switches: the fabric has no switch"),
    (fabric(switches={}), "switches: must be a list, not an object"),
    (fabric(speed=1), "fabric.speed: the field is unknown; known are control, interfaces, links, seed, switches"),
    (fabric(seed="x"), "seed: must be a whole number, not a string"),
    (fabric(seed=-1), "seed: -1 is not within 0"),
    (fabric(control=5), "control: must be a string, not 5"),
    (fabric(control="/" * 108), "control: the path of a Unix socket has 1 to 107 bytes"),
    (fabric(control="/x\ud800"), "control: '/x.+ud800' has characters that cannot be printed"),
    (changed("links", loss=10**400), r"links\[0\].loss: the number is too large"),
    (changed("switches", grpc_addr="127.0.0.1:\u00b2"), "is not HOST:PORT"),
    (changed("switches", program="a\0b"), r"switches\[0\].program: .* cannot be printed"),
    (without("switches", "device_id"), r"switches\[0\].device_id: the field is missing"),
    (
        changed("switches", device_id=2),
        r"switches\[1\].device_id: device id 2 is used by switches",
    ),
    (changed("switches", name="s2"), r"switches\[1\].name: name s2 is used by"),
    (changed("switches", name="a b"), r"switches\[0\].name: 'a b' is no name of a switch"),
    (changed("switches", grpc_addr="127.0.0.1:50052"), "gRPC address 127.0.0.1:50052 is used by"),
    (changed("switches", grpc_addr="127.0.0.1"), r"switches\[0\].grpc_addr: '127.0.0.1' is not HOST:PORT"),
    (changed("switches", port=1), r"switches\[0\].port: the field is unknown"),
    (changed("switches", device_id=True), r"switches\[0\].device_id: must be a whole number, not a boolean"),
    (changed("links", a=["s9", 1]), r"links\[0\].a: no switch is named 's9'"),
    (changed("links", a=["s1"]), r'links\[0\].a: must be \["switch", port\]'),
    (changed("links", a=["s1", 3]), r"interfaces\[0\].port: port s1:3 is used by links\[0\].a already"),
    (changed("links", b=["s2", 510]), r"links\[0\].b: port 510 is the CPU port of 's2'"),
    (changed("links", loss=1.5), r"links\[0\].loss: 1.5 is not a probability within 0..1"),
    (changed("links", loss=float("nan")), r"links\[0\].loss: nan is not a probability"),
    (changed("links", rate_bps=-1), r"links\[0\].rate_bps: -1 is not within 0"),
    (changed("links", delay_ns="5"), r"links\[0\].delay_ns: must be a whole number, not a string"),
    (changed("links", queue_packets=0), r"links\[0\].queue_packets: 0 is not within 1"),
    (without("links", "b"), r"links\[0\].b: the field is missing"),
    (changed("interfaces", interface="../x"), r"interfaces\[0\].interface: '../x' is no name of a network interface"),
    (without("interfaces", "switch"), r"interfaces\[0\].switch: the field is missing"),
    (changed("switches", buffer={}), r"switches\[0\].buffer.total_bytes: the field is missing"),
    (changed("switches", buffer={"total_bytes": 0}), r"switches\[0\].buffer.total_bytes: 0 is not within 1..2\^40-1"),
    (changed("switches", buffer={"total_bytes": 9, "alpha": "x"}), r"buffer.alpha: 'x' is no fraction such as 1/2"),
    (changed("switches", buffer={"total_bytes": 9, "alpha": 0.5}), r"buffer.alpha: must be a whole number or a string"),
    (changed("switches", buffer={"total_bytes": 9, "size": 1}), r"switches\[0\].buffer.size: the field is unknown"),
    (changed("switches", buffer={"total_bytes": 9, "pfc": {"priorities": 3, "headroom_bytes": 1}}), "must be a list"),
    (changed("switches", buffer={"total_bytes": 9, "pfc": {"headroom_bytes": 1}}), "pfc.priorities: the field"),
    (
        changed("switches", buffer={"total_bytes": 9, "pfc": {"priorities": [0], "headroom_bytes": 1}}),
        r"switches\[0\].buffer.pfc: exactly one of xoff_bytes and xoff_alpha must be given",
    ),
    (
        changed("switches", buffer={"total_bytes": 9, "pfc": PFC | {"priorities": [1]}}),
        r"switches\[0\].buffer.pfc.priorities: 1 is not within 0..0",
    ),
    (changed("switches", queues=[{"port": 9}]), r"switches\[0\].queues\[0\].port: port 9 is not connected"),
    (changed("switches", queues=[{"port": 1, "priority": 1}]), r"queues\[0\].priority: 1 is not within 0..0"),
    (changed("switches", queues=[{"port": 1, "alpha": "1/2"}]), "reserved_bytes and alpha need a shared buffer"),
    (changed("switches", queues=[{"port": 1, "rate_pps": -1}]), r"queues\[0\].rate_pps: -1 is not within 0"),
    (
        changed("switches", queues=[{"port": 1, "priority": 0, "rate_pps": 1, "rate_bps": 1}]),
        r"switches\[0\].queues\[0\]: a queue has a rate in bits or in packets a second, not both",
    ),
]


@pytest.mark.parametrize(("document", "text"), BAD_FABRICS)
def test_a_bad_fabric_names_the_field(document, text, tmp_path, capsys):
    with pytest.raises(ConfigError, match=text):
        parse_fabric(document)
    path = tmp_path / "fabric.json"
    path.write_text(json.dumps(document))
    assert daemon.main(["--fabric", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="none.json: No such file or directory"):
        load_fabric(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match="bad.json: not JSON: "):
        load_fabric(tmp_path / "bad.json")
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="bin.json: not UTF-8 text"):
        load_fabric(tmp_path / "bin.json")
