"""A laboratory with its controller: the verbs that break and mend it, and hosts that ask by ARP."""

import json
import time

import pytest
from typer.testing import CliRunner

from lab import cli, controller_process
from lab.config import LabConfig
from lab.controller_process import policy_from_options
from lab.emulation import Emulation
from lab.errors import UsageError
from mininet_topos.catalogue import choose
from tests.conftest import needs_root

PATIENCE_S = 20


def plait(*words: str) -> str:
    """What a command prints; its error is raised."""
    result = CliRunner().invoke(cli.app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def log() -> list[str]:
    return [json.loads(line)["text"] for line in plait("controller", "log", "--json").splitlines()]


def await_log(text: str, count: int = 1) -> None:
    """Until the controller has told it so often."""
    end = time.monotonic() + PATIENCE_S
    while sum(text in line for line in log()) < count:
        assert time.monotonic() < end, "\n".join(log())


@needs_root
def test_a_laboratory_is_broken_and_mended() -> None:
    config = LabConfig.from_options(choose("fattree", {"k": 2}))
    with Emulation(config, lambda text: None, controller_stays=True) as lab:
        assert lab.installed.switches == 5 and lab.installed.written == lab.installed.verified == 35
        await_log("8 ports lead where the topology says")
        h1 = lab.network.get("h1")

        # A gateway that was forgotten is asked for, and the switch's port answers through the controller.
        assert " 0% packet loss" in h1.cmd("ip neigh del 10.0.0.1 dev h1-eth0; ping -c 1 -W 5 10.1.0.2")
        assert lab.topology.gateway_mac("h1") in h1.cmd("ip neigh show 10.0.0.1")

        assert all(link["up"] for link in json.loads(plait("link", "list", "--json")))
        assert json.loads(plait("link", "down", "s1", "s2:2", "--json")) == [{"link": "s1-eth1:s2-eth2", "up": False}]
        await_log("s1-s2 (s1-eth1:s2-eth2) is down")
        down = [link for link in json.loads(plait("link", "list", "--json")) if not link["up"]]
        assert [(link["a"], link["b"], link["why"]) for link in down] == [("s1:1", "s2:2", "taken down")]
        plait("link", "up", "s2", "s1")
        await_log("s1-s2 (s1-eth1:s2-eth2) is up")

        plait("switch", "stop", "s3")
        await_log("all 2 links of s3 are down")
        states = {row["switch"]: row["up"] for row in json.loads(plait("switch", "list", "--json"))}
        assert states == {"s1": True, "s2": True, "s3": False, "s4": True, "s5": True}
        assert {link["why"] for link in json.loads(plait("link", "list", "--json"))} == {"", "s3 is off"}
        plait("switch", "start", "s3")
        await_log("s3: it had no program; loaded, and entries follow")
        await_log("all 2 links of s3 are up")
        end = time.monotonic() + PATIENCE_S
        while " 0% packet loss" not in h1.cmd("ping -c 1 -W 1 10.1.0.2"):
            assert time.monotonic() < end, "\n".join(log())

        # Without a controller packets go on, and the next one finds nothing to do.
        plait("controller", "stop")
        assert json.loads(plait("controller", "status", "--json"))["pid"] is None
        assert " 0% packet loss" in h1.cmd("ping -c 1 -W 5 10.1.0.2")
        assert plait("controller", "start") == "5 switches hold 35 entries, 0 written now\n"
        assert json.loads(plait("controller", "status", "--json"))["pid"] == controller_process.running_pid()

        for words, text in (
            (("link", "down", "s1", "s22"), "no node 's22' in the running laboratory; did you mean 's2'?"),
            (("link", "down", "s1", "s5"), "no link between s1 and s5; s1 has links to s2, s3."),
            (("link", "down", "s1:2", "s2"), "no link between s1:2 and s2; s1 has links to s2, s3."),
            (("switch", "stop", "s33"), "no switch 's33' in the running laboratory; did you mean 's3'?"),
            (("controller", "start"), "the controller runs already (pid "),
        ):
            with pytest.raises(Exception, match="no |runs already") as refused:
                plait(*words)
            assert text in str(refused.value)


def test_a_routing_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="--routing 'valley': known are shortest, up-down."):
        policy_from_options(1, "valley", None, choose("fattree", {"k": 2}).build())
