"""The command line of `plait-switch`: simple_switch_grpc's, and `--fabric` for many switches at once.

simple_switch_grpc wants target options after a lone `--`; here they may stand on either side of it.
"""

import argparse
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from fastswitch.config import ConfigError, FabricSpec, InterfaceSpec, SwitchSpec, check_address, load_fabric
from fastswitch.server.service import API_VERSION, Tls

DEFAULT_ADDRESS = "127.0.0.1:9559"

# Options of simple_switch_grpc that change nothing here: what is said on stderr when they are given.
_NOTED = {
    "--thrift-port": "there is no Thrift server; tables are reached over P4Runtime",
    "--nanolog": "there is no nanomsg event log; use --log-file",
    "--notifications-addr": "there are no nanomsg notifications; use the P4Runtime stream",
    "--max-mc-groups": "multicast groups are not limited in number",
    "--dump-packet-data": "packets are not dumped; use --pcap",
    "--debugger-addr": "there is no debugger",
    "--log-file-max-size": "the log file is not rotated",
    "--log-file-max-files": "the log file is not rotated",
    "--max-port-count": "the number of ports is not limited",
}
_NOTED_SWITCHES = {
    "--log-flush": "every line of the log is flushed",
    "--debugger": "there is no debugger",
    "--enable-swap": "a new program can always be loaded",
    "--disable-swap": "a new program can always be loaded over P4Runtime",
}
# Options that would change what the switch does: refused, with what to do instead.
_REFUSED = {
    "--use-files": "packets cannot be read from files; attach interfaces with -i",
    "--packet-in": "packets cannot come over nanomsg; attach interfaces with -i",
    "--restore-state": "there is no saved state to restore",
}


class UsageError(Exception):
    """A command line that cannot be used."""


@dataclass
class Options:
    """The command line, checked."""

    fabric: FabricSpec
    dataplane: str | None = None  # where the test port listens; there are no interfaces then
    tls: Tls | None = None
    pcap: Path | None = None
    log_console: bool = False
    log_file: Path | None = None
    log_level: str = "info"
    die_with_parent: bool = False
    notes: list[str] = field(default_factory=list)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. Try '{self.prog} --help'")


def parse(argv: list[str]) -> Options:
    """Options of a command line (without the program's name). UsageError and ConfigError say what is wrong;
    `--help` and `--version` print and exit."""
    arguments = _parser().parse_args(_without_dashes(argv))
    for name, reason in _REFUSED.items():
        if getattr(arguments, _attribute(name)) is not None:
            raise UsageError(f"{name} is not supported: {reason}")
    notes = [f"{name} is ignored: {reason}" for name, reason in _NOTED.items() if _given(arguments, name)]
    notes += [f"{name} is ignored: {reason}" for name, reason in _NOTED_SWITCHES.items() if _given(arguments, name)]
    dataplane = arguments.dp_grpc_server_addr
    if dataplane is not None and arguments.interface:
        notes.append("--interface is ignored: packets come and go through --dp-grpc-server-addr")
        arguments.interface = []
    fabric = _many(arguments) if arguments.fabric is not None else _single(arguments)
    return Options(
        fabric=fabric,
        dataplane=dataplane,
        tls=_tls(arguments),
        pcap=arguments.pcap,
        log_console=arguments.log_console,
        log_file=arguments.log_file,
        log_level=arguments.log_level,
        die_with_parent=arguments.die_with_parent,
        notes=notes,
    )


def _without_dashes(argv: list[str]) -> list[str]:
    """The arguments without the lone `--`; after a bare --pcap a program is not taken for its directory."""
    kept = [argument for argument in argv if argument != "--"]
    for i, argument in enumerate(kept[:-1]):
        if argument == "--pcap" and kept[i + 1].endswith(".json"):
            kept[i] = "--pcap=."
    return kept


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="plait-switch",
        usage="plait-switch [options] (program.json | --no-p4) [-- target options]\n"
        "       plait-switch [options] --fabric fabric.json",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A P4 switch with a P4Runtime server; takes the place of simple_switch_grpc.",
        epilog=(
            "examples:\n"
            "  plait-switch --no-p4 --device-id 1 -i 1@s1-eth1 -i 2@s1-eth2 -- --grpc-server-addr 127.0.0.1:50051\n"
            "  plait-switch -i 1@veth0 -i 2@veth2 program.json\n"
            "  plait-switch --fabric fabric.json\n"
        ),
    )
    one = parser.add_argument_group("one switch")
    one.add_argument("program", nargs="?", type=Path, metavar="program.json", help="BMv2 JSON to run from the start")
    one.add_argument("--no-p4", action="store_true", help="start without a program: a controller will push one")
    one.add_argument("--device-id", type=int, default=None, metavar="N", help="P4Runtime device id (default 0)")
    one.add_argument(
        "-i", "--interface", action="append", default=[], metavar="PORT@IFACE", help="attach an interface; repeat"
    )
    one.add_argument("--control", type=Path, metavar="SOCKET", help="Unix socket for link statistics and captures")
    target = parser.add_argument_group("target options, also after --")
    target.add_argument(
        "--grpc-server-addr", metavar="HOST:PORT", help=f"P4Runtime address (default {DEFAULT_ADDRESS}, loopback)"
    )
    target.add_argument(
        "--dp-grpc-server-addr", metavar="HOST:PORT", help="p4.bm.DataplaneInterface in place of interfaces, for tests"
    )
    target.add_argument("--cpu-port", type=int, metavar="N", help="port of packet-in and packet-out (default none)")
    target.add_argument("--drop-port", type=int, metavar="N", help="port that drops (default 511)")
    target.add_argument("--priority-queues", type=int, metavar="N", help="queues per port, 1 to 8 (default 1)")
    target.add_argument("--grpc-server-ssl", action="store_true", help="serve TLS; needs a certificate and a key")
    target.add_argument("--grpc-server-cert", type=Path, metavar="PEM", help="server certificate")
    target.add_argument("--grpc-server-key", type=Path, metavar="PEM", help="its private key")
    target.add_argument("--grpc-server-cacert", type=Path, metavar="PEM", help="authority of client certificates")
    target.add_argument("--grpc-server-with-client-auth", action="store_true", help="refuse clients without one")
    many = parser.add_argument_group("many switches")
    many.add_argument("--fabric", type=Path, metavar="fabric.json", help="switches, links, interfaces of one process")
    common = parser.add_argument_group("both")
    common.add_argument(
        "--pcap", nargs="?", type=Path, const=Path("."), metavar="DIR", help="write DIR/IFACE.pcap for every interface"
    )
    common.add_argument("--log-console", action="store_true", help="log on stderr")
    common.add_argument("--log-file", type=Path, metavar="F", help="log into F.txt, as simple_switch does")
    common.add_argument(
        "-L",
        "--log-level",
        default="info",
        choices=["trace", "debug", "info", "warn", "error", "critical", "off"],
        metavar="LEVEL",
        help="trace, debug, info (default), warn, error, critical or off",
    )
    common.add_argument("--die-with-parent", action="store_true", help="stop when the starting process ends")
    common.add_argument("-v", "--version", action="version", version=f"plait-switch (P4Runtime {API_VERSION})")
    ignored = parser.add_argument_group("options of simple_switch_grpc without effect here")
    for name in _NOTED:
        ignored.add_argument(name, metavar="X", help=_NOTED[name])
    for name in _NOTED_SWITCHES:
        ignored.add_argument(name, action="store_true", help=_NOTED_SWITCHES[name])
    for name in _REFUSED:
        ignored.add_argument(name, metavar="X", help=argparse.SUPPRESS)
    return parser


def _attribute(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _given(arguments: argparse.Namespace, option: str) -> bool:
    value = getattr(arguments, _attribute(option))
    return value is not None and value is not False


_SINGLE_ONLY = (
    "program",
    "device_id",
    "interface",
    "control",
    "grpc_server_addr",
    "dp_grpc_server_addr",
    "cpu_port",
    "drop_port",
    "priority_queues",
)


def _many(arguments: argparse.Namespace) -> FabricSpec:
    for name in _SINGLE_ONLY:
        if getattr(arguments, name):
            option = name if name == "program" else "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for one switch: with --fabric it stands in the file")
    return load_fabric(arguments.fabric)


def _single(arguments: argparse.Namespace) -> FabricSpec:
    if arguments.program is None and not arguments.no_p4:
        raise UsageError("give a program.json, or --no-p4 to start without one. Try 'plait-switch --help'")
    if arguments.program is not None and arguments.no_p4:
        raise UsageError(f"--no-p4 starts without a program, but {arguments.program} is given")
    defaults = SwitchSpec("", 0, "")
    switch = SwitchSpec(
        name=f"s{arguments.device_id or 0}",
        device_id=arguments.device_id or 0,
        grpc_addr=arguments.grpc_server_addr or DEFAULT_ADDRESS,
        cpu_port=defaults.cpu_port if arguments.cpu_port is None else arguments.cpu_port,
        drop_port=defaults.drop_port if arguments.drop_port is None else arguments.drop_port,
        priority_queues=defaults.priority_queues if arguments.priority_queues is None else arguments.priority_queues,
        program=str(arguments.program) if arguments.program is not None else None,
    )
    if arguments.cpu_port == 0:
        raise UsageError("--cpu-port 0 is not possible: 0 is the port of packets that nothing forwards")
    interfaces = tuple(_interface(text, switch.name) for text in arguments.interface)
    control = str(arguments.control) if arguments.control is not None else None
    fabric = FabricSpec((switch,), interfaces=interfaces, control=control)
    try:
        fabric.check()
        if arguments.dp_grpc_server_addr is not None:
            check_address("dp_grpc_addr", arguments.dp_grpc_server_addr)
    except ConfigError as error:
        raise UsageError(f"{_OPTION_OF.get(error.where.rpartition('.')[2], error.where)}: {error.reason}") from None
    return fabric


_OPTION_OF = {
    "device_id": "--device-id",
    "grpc_addr": "--grpc-server-addr",
    "dp_grpc_addr": "--dp-grpc-server-addr",
    "cpu_port": "--cpu-port",
    "drop_port": "--drop-port",
    "priority_queues": "--priority-queues",
    "port": "--interface",
    "interface": "--interface",
    "control": "--control",
}


def _interface(text: str, switch: str) -> InterfaceSpec:
    port, at, name = text.partition("@")
    if not at or not port.isdigit() or len(port) > 6:
        raise UsageError(f"--interface {text}: must be PORT@IFACE, such as 1@veth0")
    return InterfaceSpec(switch=switch, port=int(port), interface=name)


def _tls(arguments: argparse.Namespace) -> Tls | None:
    if not arguments.grpc_server_ssl:
        for name in ("grpc_server_cert", "grpc_server_key", "grpc_server_cacert", "grpc_server_with_client_auth"):
            if getattr(arguments, name):
                raise UsageError(f"--{name.replace('_', '-')} needs --grpc-server-ssl")
        return None
    for name in ("grpc_server_cert", "grpc_server_key"):
        if getattr(arguments, name) is None:
            raise UsageError(f"--grpc-server-ssl needs --{name.replace('_', '-')}")
    if arguments.grpc_server_with_client_auth and arguments.grpc_server_cacert is None:
        raise UsageError("--grpc-server-with-client-auth needs --grpc-server-cacert")
    for path in (arguments.grpc_server_cert, arguments.grpc_server_key, arguments.grpc_server_cacert):
        if path is not None and not path.is_file():
            raise UsageError(f"{path} does not exist or is no file")
    cert, key = arguments.grpc_server_cert, arguments.grpc_server_key
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError):  # gRPC would only log what is wrong
        raise UsageError(f"{cert} holds no certificate that fits the key {key}") from None
    if arguments.grpc_server_cacert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(arguments.grpc_server_cacert)
        except (OSError, ValueError):
            raise UsageError(f"{arguments.grpc_server_cacert} holds no certificate of an authority") from None
    return Tls(cert, key, arguments.grpc_server_cacert, arguments.grpc_server_with_client_auth)
