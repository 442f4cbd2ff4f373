"""`plait nic …`: what the hosts' NICs did, and their queue pairs, as the XDP program keeps them."""

import dataclasses
import json
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.arguments import JsonOption, known, show
from lab.completion import hosts
from lab.errors import UsageError
from lab.running import running_lab

if TYPE_CHECKING:
    from lab.nic_view import QueuePairView, ReceivingSide, SendingSide

app = typer.Typer(no_args_is_help=True, help="The hosts' RDMA NICs: counters, queue pairs, memory.")

Host = Annotated[str, typer.Argument(help="Host, such as h1.", autocompletion=hosts)]
Qpn = Annotated[str, typer.Argument(help="Number of a queue pair, as `plait nic show` tells it.")]

_CLEAR = "\x1b[H\x1b[2J"


@app.command("show")
def show_nic(host: Host, as_json: JsonOption = False) -> None:
    """Counters of a host's NIC that are not 0, by name, and its queue pairs.

    Example: plait nic show h1
    """
    with _Nic(host) as nic:
        counters = {name: value for name, value in nic.device.counters().items() if value}
        views = [nic.view(each["qpn"]) for each in nic.queue_pairs()]
    if as_json:
        print(json.dumps({"counters": counters, "queue_pairs": [dataclasses.asdict(each) for each in views]}))
        return
    width = max(map(len, counters), default=0)
    for name, value in counters.items():
        print(f"{name:<{width}}  {value:>12,}")
    print(f"\n{len(views)} queue pairs" if views else "\nno queue pairs")
    if views:
        show([_row(each) for each in views], False)


@app.command("qp")
def show_queue_pair(host: Host, qpn: Qpn, as_json: JsonOption = False) -> None:
    """One queue pair: what it sends and receives, its window, bitmap and paths.

    Example: plait nic qp h1 0x1a2b01
    """
    with _Nic(host) as nic:
        found = nic.view(nic.number(qpn))
    print(json.dumps(dataclasses.asdict(found)) if as_json else "\n".join(describe(found)))


@app.command("watch")
def watch(
    host: Host,
    qpn: Qpn,
    every: Annotated[float, typer.Option(min=0.01, max=3600, help="Seconds between two looks.")] = 0.2,
    count: Annotated[int, typer.Option(min=0, help="Looks to take; 0: until Ctrl-C or the queue pair's end.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """A queue pair's bitmap, window and paths as they change.

    Example: plait nic watch h1 0x1a2b01 --every 0.5
    """
    with _Nic(host) as nic:
        number, taken = nic.number(qpn), 0
        while True:
            found = nic.view(number)
            if found.qpn != number:
                print(f"queue pair {number:#x} of {host} is gone", file=sys.stderr)
                return
            if as_json:
                print(json.dumps({"time_s": time.time(), **dataclasses.asdict(found)}), flush=True)
            else:
                print((_CLEAR if sys.stdout.isatty() else "") + "\n".join(describe(found)), flush=True)
            taken += 1
            if taken == count:
                return
            time.sleep(every)


@app.command("memory")
def memory(as_json: JsonOption = False) -> None:
    """Bytes that a connection takes on the NIC, by transport, beside the papers'.

    Example: plait nic memory
    """
    from lab.nic_memory import NOTES, rows

    show(rows(), as_json)
    if not as_json:
        print("\n".join(NOTES))


@dataclasses.dataclass(frozen=True, slots=True)
class _QueuePairRow:
    qpn: str
    peer: str
    transport: str
    state: str
    sent: str  # una, nxt, posted
    in_flight: int
    received: str  # expected, msn
    early: int
    again: int


def _row(each: "QueuePairView") -> _QueuePairRow:
    sent, received = each.requests_sent, each.requests_received
    return _QueuePairRow(
        qpn=f"{each.qpn:#x}",
        peer=f"{each.remote_ip} {each.remote_qpn:#x}",
        transport=each.transport,
        state=each.state,
        sent=f"{sent.snd_una}..{sent.snd_nxt} of {sent.posted}",
        in_flight=sent.in_flight,
        received=f"{received.expected}, msn {received.msn}",
        early=received.out_of_order,
        again=sent.retransmissions,
    )


def describe(each: "QueuePairView") -> list[str]:
    lines = [
        f"queue pair {each.qpn:#x} -> {each.remote_ip} {each.remote_qpn:#x}   {each.transport}, {each.state}, "
        f"path MTU {each.path_mtu}, window {each.window}, bitmap {each.slots} slots"
    ]
    if each.cwnd_packets is not None:
        paths = f"{len(each.paths)} virtual paths: {_numbers(each.paths)}"
        lines.append(f"  cwnd {each.cwnd_packets:.2f} packets over {paths}")
    lines += _sending("requests", each.requests_sent) + _receiving("requests", each.requests_received)
    if each.responses_sent.snd_nxt != each.responses_sent.snd_una or each.responses_sent.acks:
        lines += _sending("responses", each.responses_sent)
    if each.responses_received.msn:
        lines += _receiving("responses", each.responses_received)
    return lines


def _numbers(values: list[int], most: int = 12) -> str:
    return ", ".join(map(str, values[:most])) + (", …" if len(values) > most else "") or "-"


def _sending(what: str, side: "SendingSide") -> list[str]:
    return [
        f"  {what} sent      una {side.snd_una}  nxt {side.snd_nxt}  posted {side.posted}  in flight {side.in_flight}",
        f"    acks {side.acks}  sacks {side.sacks}  naks {side.naks}  rnr {side.rnr_naks}  ece {side.marks}  "
        f"cnps {side.cnps}  sent again {side.retransmissions}  timeouts {side.timeouts}",
    ]


def _receiving(what: str, side: "ReceivingSide") -> list[str]:
    lines = [
        f"  {what} received  expected {side.expected}  msn {side.msn}  early {side.out_of_order}  "
        f"naks sent {side.gaps}  cnps sent {side.cnps_sent}"
    ]
    if side.bitmap:
        lines.append(f"    {side.bitmap}   (· missing  █ received  ▲ ends a message  ◆ and completes a receive)")
    return lines


class _Nic:
    """A host's NIC: its agent, and the map of queue pairs for reading."""

    def __init__(self, host: str) -> None:
        lab = running_lab()
        self._path = lab.hosts[known("host", host, lab.hosts)]
        self._host = host
        self._stack = ExitStack()

    def __enter__(self) -> "_Nic":
        import os

        from lab.nic_view import Layout
        from rdma.verbs import Device

        self.device = self._stack.enter_context(Device.open(self._path))
        self._layout = Layout()
        self._fd = self.device.open_queue_pairs()
        self._stack.callback(os.close, self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def queue_pairs(self) -> list[dict[str, Any]]:
        """Of all clients on the host, as the agent lists them."""
        found: list[dict[str, Any]] = self.device.call("queue_pairs")["queue_pairs"]
        return found

    def number(self, text: str) -> int:
        """UsageError unless it is the number of a queue pair of this host."""
        there = [each["qpn"] for each in self.queue_pairs()]
        try:
            wanted = int(text, 0)
        except ValueError:
            raise UsageError(f"queue pair {text!r}: expected a number, such as 0x1a2b01.") from None
        if wanted not in there:
            has = ", ".join(f"{qpn:#x}" for qpn in there[:10]) or "none"
            raise UsageError(f"no queue pair {text} on {self._host}; it has {has}.")
        return wanted

    def view(self, qpn: int) -> "QueuePairView":
        from lab.nic_view import view

        transports = {each["qpn"]: each["transport"] for each in self.queue_pairs()}
        slots = self.device.queue_pair_slots
        qp = self._layout.read(self._fd, qpn % slots)
        return view(qp, transports.get(qpn, "gone"))
