-- Wireshark dissector of RoCEv2 with Plait's headers.
-- Do not edit; generated from p4src/include/headers.p4 and p4src/include/codes.p4 by wire/generate.py.
local plait = Proto("plait", "RoCEv2 (Plait)")
local port, icrc_bytes = 4791, 4
local payload = ProtoField.bytes("plait.payload", "payload")
local icrc = ProtoField.uint32("plait.icrc", "icrc", base.HEX)
local opcodes = { [0] = "RC_SEND_FIRST", [1] = "RC_SEND_MIDDLE", [2] = "RC_SEND_LAST", [3] = "RC_SEND_LAST_IMM", [4] = "RC_SEND_ONLY", [5] = "RC_SEND_ONLY_IMM", [6] = "RC_WRITE_FIRST", [7] = "RC_WRITE_MIDDLE", [8] = "RC_WRITE_LAST", [9] = "RC_WRITE_LAST_IMM", [10] = "RC_WRITE_ONLY", [11] = "RC_WRITE_ONLY_IMM", [12] = "RC_READ_REQUEST", [13] = "RC_READ_RESPONSE_FIRST", [14] = "RC_READ_RESPONSE_MIDDLE", [15] = "RC_READ_RESPONSE_LAST", [16] = "RC_READ_RESPONSE_ONLY", [17] = "RC_ACKNOWLEDGE", [18] = "RC_ATOMIC_ACKNOWLEDGE", [19] = "RC_COMPARE_SWAP", [20] = "RC_FETCH_ADD", [22] = "RC_SEND_LAST_INVALIDATE", [23] = "RC_SEND_ONLY_INVALIDATE", [24] = "RC_READ_ACKNOWLEDGE", [129] = "CNP" }
local chains = {
  [0] = {
    [3] = { "immdt" },
    [5] = { "immdt" },
    [6] = { "reth" },
    [9] = { "immdt" },
    [10] = { "reth" },
    [11] = { "reth", "immdt" },
    [12] = { "reth" },
    [13] = { "aeth" },
    [15] = { "aeth" },
    [16] = { "aeth" },
    [17] = { "aeth" },
    [18] = { "aeth", "atomic_ack_eth" },
    [19] = { "atomic_eth" },
    [20] = { "atomic_eth" },
    [22] = { "ieth" },
    [23] = { "ieth" },
    [24] = { "aeth" },
  },
  [1] = {
    [0] = { "xdata" },
    [1] = { "xdata" },
    [2] = { "xdata" },
    [3] = { "xdata", "immdt" },
    [4] = { "xdata" },
    [5] = { "xdata", "immdt" },
    [6] = { "xdata", "reth" },
    [7] = { "xdata", "reth" },
    [8] = { "xdata", "reth" },
    [9] = { "xdata", "reth", "immdt" },
    [10] = { "xdata", "reth" },
    [11] = { "xdata", "reth", "immdt" },
    [12] = { "xdata", "reth" },
    [13] = { "xdata", "aeth" },
    [14] = { "xdata" },
    [15] = { "xdata", "aeth" },
    [16] = { "xdata", "aeth" },
    [17] = { "xdata", "aeth" },
    [18] = { "xdata", "aeth", "atomic_ack_eth" },
    [19] = { "xdata", "atomic_eth" },
    [20] = { "xdata", "atomic_eth" },
    [22] = { "xdata", "ieth" },
    [23] = { "xdata", "ieth" },
    [24] = { "xdata", "aeth" },
    [129] = { "xdata" },
  },
  [2] = {
    [0] = { "xack" },
    [1] = { "xack" },
    [2] = { "xack" },
    [3] = { "xack", "immdt" },
    [4] = { "xack" },
    [5] = { "xack", "immdt" },
    [6] = { "xack", "reth" },
    [7] = { "xack" },
    [8] = { "xack" },
    [9] = { "xack", "immdt" },
    [10] = { "xack", "reth" },
    [11] = { "xack", "reth", "immdt" },
    [12] = { "xack", "reth" },
    [13] = { "xack", "aeth" },
    [14] = { "xack" },
    [15] = { "xack", "aeth" },
    [16] = { "xack", "aeth" },
    [17] = { "xack", "aeth" },
    [18] = { "xack", "aeth", "atomic_ack_eth" },
    [19] = { "xack", "atomic_eth" },
    [20] = { "xack", "atomic_eth" },
    [22] = { "xack", "ieth" },
    [23] = { "xack", "ieth" },
    [24] = { "xack", "aeth" },
    [129] = { "xack" },
  },
}
local headers = {
  bth = { bytes = 12, title = "bth", fields = {
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.bth.opcode", "opcode", base.HEX, { [0] = "RC_SEND_FIRST", [1] = "RC_SEND_MIDDLE", [2] = "RC_SEND_LAST", [3] = "RC_SEND_LAST_IMM", [4] = "RC_SEND_ONLY", [5] = "RC_SEND_ONLY_IMM", [6] = "RC_WRITE_FIRST", [7] = "RC_WRITE_MIDDLE", [8] = "RC_WRITE_LAST", [9] = "RC_WRITE_LAST_IMM", [10] = "RC_WRITE_ONLY", [11] = "RC_WRITE_ONLY_IMM", [12] = "RC_READ_REQUEST", [13] = "RC_READ_RESPONSE_FIRST", [14] = "RC_READ_RESPONSE_MIDDLE", [15] = "RC_READ_RESPONSE_LAST", [16] = "RC_READ_RESPONSE_ONLY", [17] = "RC_ACKNOWLEDGE", [18] = "RC_ATOMIC_ACKNOWLEDGE", [19] = "RC_COMPARE_SWAP", [20] = "RC_FETCH_ADD", [22] = "RC_SEND_LAST_INVALIDATE", [23] = "RC_SEND_ONLY_INVALIDATE", [24] = "RC_READ_ACKNOWLEDGE", [129] = "CNP" }) },
    { from = 1, bytes = 1, proto = ProtoField.uint8("plait.bth.solicited", "solicited", base.DEC, nil, 0x80) },
    { from = 1, bytes = 1, proto = ProtoField.uint8("plait.bth.mig_req", "mig_req", base.DEC, nil, 0x40) },
    { from = 1, bytes = 1, proto = ProtoField.uint8("plait.bth.pad_count", "pad_count", base.DEC, nil, 0x30) },
    { from = 1, bytes = 1, proto = ProtoField.uint8("plait.bth.version", "version", base.DEC, nil, 0xf) },
    { from = 2, bytes = 2, proto = ProtoField.uint16("plait.bth.pkey", "pkey", base.DEC) },
    { from = 4, bytes = 1, proto = ProtoField.uint8("plait.bth.fecn", "fecn", base.DEC, nil, 0x80) },
    { from = 4, bytes = 1, proto = ProtoField.uint8("plait.bth.becn", "becn", base.DEC, nil, 0x40) },
    { from = 4, bytes = 1, proto = ProtoField.uint8("plait.bth.reserved6", "reserved6", base.DEC, nil, 0x3f) },
    { from = 5, bytes = 3, proto = ProtoField.uint24("plait.bth.dest_qpn", "dest_qpn", base.DEC) },
    { from = 8, bytes = 1, proto = ProtoField.uint8("plait.bth.ack_req", "ack_req", base.DEC, nil, 0x80) },
    { from = 8, bytes = 1, proto = ProtoField.uint8("plait.bth.extension", "extension", base.HEX, { [0] = "NONE", [1] = "DATA", [2] = "ACK" }, 0x7f) },
    { from = 9, bytes = 3, proto = ProtoField.uint24("plait.bth.psn", "psn", base.DEC) },
  } },
  reth = { bytes = 16, title = "reth", fields = {
    { from = 0, bytes = 8, proto = ProtoField.uint64("plait.reth.virtual_address", "virtual_address", base.HEX) },
    { from = 8, bytes = 4, proto = ProtoField.uint32("plait.reth.rkey", "rkey", base.HEX) },
    { from = 12, bytes = 4, proto = ProtoField.uint32("plait.reth.dma_length", "dma_length", base.HEX) },
  } },
  aeth = { bytes = 4, title = "aeth", fields = {
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.aeth.syndrome", "syndrome", base.DEC) },
    { from = 1, bytes = 3, proto = ProtoField.uint24("plait.aeth.msn", "msn", base.DEC) },
  } },
  immdt = { bytes = 4, title = "immdt", fields = {
    { from = 0, bytes = 4, proto = ProtoField.uint32("plait.immdt.immediate", "immediate", base.HEX) },
  } },
  atomic_eth = { bytes = 28, title = "atomic_eth", fields = {
    { from = 0, bytes = 8, proto = ProtoField.uint64("plait.atomic_eth.virtual_address", "virtual_address", base.HEX) },
    { from = 8, bytes = 4, proto = ProtoField.uint32("plait.atomic_eth.rkey", "rkey", base.HEX) },
    { from = 12, bytes = 8, proto = ProtoField.uint64("plait.atomic_eth.swap_add", "swap_add", base.HEX) },
    { from = 20, bytes = 8, proto = ProtoField.uint64("plait.atomic_eth.compare", "compare", base.HEX) },
  } },
  atomic_ack_eth = { bytes = 8, title = "atomic_ack_eth", fields = {
    { from = 0, bytes = 8, proto = ProtoField.uint64("plait.atomic_ack_eth.original_value", "original_value", base.HEX) },
  } },
  ieth = { bytes = 4, title = "ieth", fields = {
    { from = 0, bytes = 4, proto = ProtoField.uint32("plait.ieth.rkey", "rkey", base.HEX) },
  } },
  xdata = { bytes = 16, title = "xdata", fields = {
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xdata.retransmission", "retransmission", base.DEC, nil, 0x80) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xdata.synchronise", "synchronise", base.DEC, nil, 0x40) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xdata.last", "last", base.DEC, nil, 0x20) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xdata.reserved_flags", "reserved_flags", base.DEC, nil, 0x1f) },
    { from = 1, bytes = 3, proto = ProtoField.uint24("plait.xdata.msn", "msn", base.DEC) },
    { from = 4, bytes = 1, proto = ProtoField.uint8("plait.xdata.reserved_ipsn", "reserved_ipsn", base.DEC) },
    { from = 5, bytes = 3, proto = ProtoField.uint24("plait.xdata.ipsn", "ipsn", base.DEC) },
    { from = 8, bytes = 1, proto = ProtoField.uint8("plait.xdata.reserved_wqe", "reserved_wqe", base.DEC) },
    { from = 9, bytes = 3, proto = ProtoField.uint24("plait.xdata.wqe_sn", "wqe_sn", base.DEC) },
    { from = 12, bytes = 4, proto = ProtoField.uint32("plait.xdata.head", "head", base.HEX) },
  } },
  xack = { bytes = 8, title = "xack", fields = {
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xack.sack_valid", "sack_valid", base.DEC, nil, 0x80) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xack.ece", "ece", base.DEC, nil, 0x40) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xack.retransmission", "retransmission", base.DEC, nil, 0x20) },
    { from = 0, bytes = 1, proto = ProtoField.uint8("plait.xack.reserved_flags", "reserved_flags", base.DEC, nil, 0x1f) },
    { from = 1, bytes = 3, proto = ProtoField.uint24("plait.xack.sack_psn", "sack_psn", base.DEC) },
    { from = 4, bytes = 2, proto = ProtoField.uint16("plait.xack.path", "path", base.DEC) },
    { from = 6, bytes = 2, proto = ProtoField.uint16("plait.xack.reserved16", "reserved16", base.DEC) },
  } },
}
plait.fields = { payload, icrc }
for _, header in pairs(headers) do
  for _, field in ipairs(header.fields) do table.insert(plait.fields, field.proto) end
end

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
