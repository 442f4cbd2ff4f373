"""Emits plait.lua: a Wireshark dissector of RoCEv2 with Plait's headers, from the same declarations as everything else.

`tshark -X lua_script:wire/plait.lua -r capture.pcap`.  The tables are generated, those of how headers follow each other
from rocev2.py; the walk over them is written out once at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from wire.declarations import Const, Enum, Field, Header, Source
from wire.text import notice

_IN_WIRESHARK = {"ethernet", "ipv4", "udp"}

_WALK = """
local function dissect_header(name, tvb, at, tree)
  local header = headers[name]
  local branch = tree:add(plait, tvb(at, header.bytes), header.title)
  for _, field in ipairs(header.fields) do
    branch:add(field.proto, tvb(at + field.from, field.bytes))
  end
  return at + header.bytes
end

local function dissect_chain(chain, tvb, at, tree)
  for _, name in ipairs(chain or {}) do
    if tvb:len() - icrc_bytes - at < headers[name].bytes then return at end
    at = dissect_header(name, tvb, at, tree)
  end
  return at
end

function plait.dissector(tvb, pinfo, root)
  if tvb:len() < headers.bth.bytes + icrc_bytes then return 0 end
  local tree = root:add(plait, tvb())
  local at = dissect_header("bth", tvb, 0, tree)
  local opcode = tvb(0, 1):uint()
  local chain = chains[tvb(8, 1):bitfield(1, 7)] or chains[0]
  at = dissect_chain(chain[opcode], tvb, at, tree)
  local left = tvb:len() - icrc_bytes - at
  if left > 0 then tree:add(payload, tvb(at, left)) end
  tree:add(icrc, tvb(tvb:len() - icrc_bytes, icrc_bytes))
  pinfo.cols.protocol = "RoCEv2"
  pinfo.cols.info = string.format("%s qpn %d psn %d", opcodes[opcode] or string.format("opcode 0x%02x", opcode),
    tvb(5, 3):uint(), tvb(9, 3):uint())
  return tvb:len()
end

DissectorTable.get("udp.port"):add(port, plait)
"""


def emit(sources: list[Source]) -> str:
    # Not at the top: rocev2.py imports codes.py, which the same generator writes.
    from wire.codes import ICRC_BYTES, ROCEV2_UDP_PORT, BthExtension

    headers = [header for source in sources for header in source.of(Header) if header.name not in _IN_WIRESHARK]
    enums = {enum.name: enum for source in sources for enum in source.of(Enum)}
    assert {"ROCEV2_UDP_PORT", "ICRC_BYTES"} <= {const.name for source in sources for const in source.of(Const)}
    lines = [
        "-- Wireshark dissector of RoCEv2 with Plait's headers.",
        f"-- {notice(sources)}",
        'local plait = Proto("plait", "RoCEv2 (Plait)")',
        f"local port, icrc_bytes = {ROCEV2_UDP_PORT}, {ICRC_BYTES}",
        'local payload = ProtoField.bytes("plait.payload", "payload")',
        'local icrc = ProtoField.uint32("plait.icrc", "icrc", base.HEX)',
        *_names("opcodes", enums["bth_opcode"]),
        "local chains = {",
        *(line for extension in BthExtension for line in _chains(extension)),
        "}",
        "local headers = {",
        *(line for header in headers for line in _header(header, enums)),
        "}",
        "plait.fields = { payload, icrc }",
        "for _, header in pairs(headers) do",
        "  for _, field in ipairs(header.fields) do table.insert(plait.fields, field.proto) end",
        "end",
    ]
    return "\n".join(lines) + "\n" + _WALK


def _names(variable: str, enum: Enum) -> Iterator[str]:
    yield f"local {variable} = {_value_string(enum)}"


def _value_string(enum: Enum) -> str:
    return "{ " + ", ".join(f'[{value}] = "{name}"' for name, value in enum.members) + " }"


def _chains(extension: int) -> Iterator[str]:
    from wire.codes import BthOpcode
    from wire.rocev2 import header_chain

    yield f"  [{int(extension)}] = {{"
    for opcode in BthOpcode:
        names = ", ".join(f'"{name}"' for name in header_chain(opcode, extension))
        if names:
            yield f"    [{int(opcode)}] = {{ {names} }},"
    yield "  },"


def _header(header: Header, enums: dict[str, Enum]) -> Iterator[str]:
    yield f'  {header.name} = {{ bytes = {header.length}, title = "{header.name}", fields = {{'
    for field in header.fields:
        yield f"    {_field(header, field, enums)},"
    yield "  } },"


def _field(header: Header, field: Field, enums: dict[str, Enum]) -> str:
    """A field that is not whole bytes is a mask over the whole bytes around it, as Wireshark wants it."""
    start, end = field.offset // 8, (field.offset + field.bits + 7) // 8
    size = end - start
    whole = field.bits == 8 * size
    kind = {1: "uint8", 2: "uint16", 3: "uint24", 4: "uint32", 8: "uint64"}[size]
    mask = field.mask << (8 * end - field.offset - field.bits)
    enum = enums.get(field.type_name or "")
    base = "base.HEX" if field.bits in (32, 64) or enum else "base.DEC"
    arguments = [f'"plait.{header.name}.{field.name}"', f'"{field.name}"', base]
    if enum or not whole:
        arguments.append(_value_string(enum) if enum else "nil")
    if not whole:
        arguments.append(hex(mask))
    return f"{{ from = {start}, bytes = {size}, proto = ProtoField.{kind}({', '.join(arguments)}) }}"
