"""P4Info for tests, built as a compiler would: the tables of ecmp.p4, and a `zoo` with every kind of key."""

from pathlib import Path

import finsy as fy
from finsy.proto import p4i
from google.protobuf import text_format

from controller.control import Program

TABLE, ACTION, PROFILE, COUNTER, DIRECT = 0x02 << 24, 0x01 << 24, 0x11 << 24, 0x12 << 24, 0x13 << 24


def _preamble(ident: int, name: str) -> p4i.Preamble:
    return p4i.Preamble(id=ident, name=name, alias=name.rpartition(".")[2])


def _action(number: int, name: str, **params: int) -> p4i.Action:
    made = [p4i.Action.Param(id=i + 1, name=param, bitwidth=width) for i, (param, width) in enumerate(params.items())]
    return p4i.Action(preamble=_preamble(ACTION | number, name), params=made)


def _table(number, name, keys, actions, size=1024, **more):
    fields = [
        p4i.MatchField(id=i + 1, name=field, bitwidth=width, match_type=p4i.MatchField.MatchType.Value(kind))
        for i, (field, width, kind) in enumerate(keys)
    ]
    refs = [p4i.ActionRef(id=action.preamble.id) for action in actions]
    return p4i.Table(preamble=_preamble(TABLE | number, name), match_fields=fields, action_refs=refs, size=size, **more)


def p4info(routes_size: int = 4096, members: int = 1024, group: int = 16) -> p4i.P4Info:
    forward = _action(1, "ingress.balance.forward", port=9)
    set_seed = _action(2, "ingress.balance.per_flow.set_seed", odd_multiplier=32)
    set_red = _action(3, "egress.mark.set_red", kmin_bytes=32, kmax_bytes=32, slope_per_byte=32)
    no_action = _action(4, "NoAction")
    tag = _action(5, "ingress.tag", label=0)
    pair = _action(6, "ingress.pair", ip_src=32, count=32)
    set_macs = _action(7, "ingress.depart.macs.set_macs", src_mac=48, dst_mac=48)
    deliver = _action(8, "ingress.deliver", src_mac=48, dst_mac=48, port=9)
    lpm = [("hdr.ipv4.dst_addr", 32, "LPM")]
    zoo = [
        ("hdr.ethernet.ether_type", 16, "TERNARY"),
        ("hdr.ipv4.src_addr", 32, "TERNARY"),
        ("meta.l4_dst_port", 16, "RANGE"),
        ("hdr.ipv4.protocol", 8, "OPTIONAL"),
        ("standard_metadata.ingress_port", 9, "EXACT"),
    ]
    profile = PROFILE | 1
    return p4i.P4Info(
        pkg_info=p4i.PkgInfo(arch="v1model"),
        tables=[
            _table(1, "ingress.balance.ipv4_lpm", lpm, [forward], routes_size, implementation_id=profile),
            _table(2, "ingress.balance.per_flow.switch_seed", [], [set_seed]),
            _table(
                3,
                "egress.mark.red_curve",
                [("standard_metadata.egress_port", 9, "EXACT")],
                [set_red, no_action],
                512,
            ),
            _table(
                6,
                "ingress.depart.macs.neighbor",
                [("standard_metadata.egress_spec", 9, "EXACT")],
                [set_macs, no_action],
                512,
            ),
            _table(4, "ingress.zoo", zoo, [no_action, tag, pair], direct_resource_ids=[DIRECT | 1]),
            _table(
                5,
                "ingress.dmac",
                [("hdr.ethernet.dst_addr", 48, "EXACT")],
                [deliver, no_action],
            ),
        ],
        actions=[forward, set_seed, set_red, no_action, tag, pair, set_macs, deliver],
        action_profiles=[
            p4i.ActionProfile(
                preamble=_preamble(profile, "ingress.balance.action_selector"),
                table_ids=[TABLE | 1],
                with_selector=True,
                size=members,
                max_group_size=group,
            )
        ],
        counters=[
            p4i.Counter(
                preamble=_preamble(COUNTER | i + 1, name), spec=p4i.CounterSpec(unit=p4i.CounterSpec.BOTH), size=512
            )
            for i, name in enumerate(("ingress.rx.port_rx", "egress.tx.port_tx"))
        ],
        direct_counters=[
            p4i.DirectCounter(
                preamble=_preamble(DIRECT | 1, "ingress.zoo_counter"),
                spec=p4i.CounterSpec(unit=p4i.CounterSpec.BOTH),
                direct_table_id=TABLE | 4,
            )
        ],
    )


def schema(**sizes: int) -> fy.P4Schema:
    return fy.P4Schema(p4info(**sizes))


def write_program(folder: Path, **sizes: int) -> Program:
    """The program's files, as a compiler leaves them."""
    program = Program(folder / "ecmp.p4info.txtpb", folder / "ecmp.json")
    program.p4info.write_text(text_format.MessageToString(p4info(**sizes)))
    program.json.write_text("{}")
    return program
