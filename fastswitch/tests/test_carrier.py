"""What the kernel tells of carriers, from made-up bytes and from real interfaces; and a daemon that heeds it."""

import contextlib
import json
import os
import selectors
import shutil
import socket
import struct
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastswitch.carrier import CarrierWatch, carriers
from fastswitch.control import Client
from fastswitch.tests.test_daemon_run import free_ports, running

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="veth interfaces need root and ip")


def message(kind, index, flags, extra=b""):
    """As rtnetlink(7) draws it: nlmsghdr, ifinfomsg, attributes."""
    body = struct.pack("=BBHiII", 0, 0, 1, index, flags, 0) + extra
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body + bytes(-len(body) % 4)


def test_messages_of_interfaces():
    data = message(16, 3, 0x11043) + message(20, 4, 0x10000) + message(16, 5, 0x1003, b"x") + message(17, 6, 0x10000)
    assert carriers(data) == [(3, True), (5, False), (6, False)]


@given(st.lists(st.tuples(st.integers(1, 99), st.booleans()), max_size=5), st.binary(max_size=80))
def test_what_is_cut_off_or_made_up_ends_the_list(known, rest):
    data = b"".join(message(16, index, up << 16) for index, up in known)
    assert carriers(data + rest)[: len(known)] == known
    assert carriers(data[:-1] if known else b"")[: len(known) - 1] == known[:-1]


@pytest.fixture(name="pair")
def _pair():
    inside, outside = f"pci{os.getpid() % 10**6}", f"pco{os.getpid() % 10**6}"
    subprocess.run(["ip", "link", "add", inside, "type", "veth", "peer", "name", outside], check=True)
    for name in (inside, outside):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    yield inside, outside
    subprocess.run(["ip", "link", "del", inside], check=False, stderr=subprocess.DEVNULL)


@needs_root
def test_a_carrier_goes_and_comes(pair):
    inside, outside = pair
    index, said = socket.if_nametoindex(inside), []
    watch = CarrierWatch(lambda which, up: said.append(up) if which == index else None)

    def expect(state):
        end = time.monotonic() + 5
        with selectors.DefaultSelector() as selector:
            selector.register(watch, selectors.EVENT_READ)
            while not said or said[-1] != state:
                assert selector.select(end - time.monotonic()), (said, state)
                watch.read()

    with contextlib.closing(watch):
        watch.start()
        expect(True)
        for command, state in (
            (["set", outside, "down"], False),
            (["set", outside, "up"], True),
            (["set", inside, "down"], False),
            (["set", inside, "up"], True),
            (["del", inside], False),
        ):
            subprocess.run(["ip", "link", *command], check=True)
            expect(state)


@needs_root
def test_a_link_without_carrier_is_down_and_what_people_want_stays(pair, tmp_path):
    inside, outside = pair
    (port,) = free_ports(1)
    fabric = {
        "switches": [{"name": "s1", "device_id": 1, "grpc_addr": f"127.0.0.1:{port}"}],
        "interfaces": [{"switch": "s1", "port": 1, "interface": inside}],
        "control": str(tmp_path / "control.sock"),
    }
    (tmp_path / "fabric.json").write_text(json.dumps(fabric))
    subprocess.run(["ip", "link", "set", outside, "down"], check=True)
    with running("--fabric", tmp_path / "fabric.json"), Client(tmp_path / "control.sock") as client:

        def expect(state):
            end = time.monotonic() + 5
            while client.links()[0]["up"] != state:
                assert time.monotonic() < end, state

        assert client.links()[0]["up"] is False
        subprocess.run(["ip", "link", "set", outside, "up"], check=True)
        expect(True)
        client.request("link_set", link=inside, up=False)
        assert client.links()[0]["up"] is False
        subprocess.run(["ip", "link", "set", outside, "down"], check=True)
        client.request("link_set", link=inside, up=True)
        expect(False)
        subprocess.run(["ip", "link", "set", outside, "up"], check=True)
        expect(True)
