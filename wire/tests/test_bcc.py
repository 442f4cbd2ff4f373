"""wire.h in an XDP program: BCC's clang takes it without warnings, and the verifier takes what it makes of it."""

import os
from pathlib import Path

import pytest

bcc = pytest.importorskip("bcc", reason="BCC (python3-bpfcc) is not installed")

WIRE = Path(__file__).resolve().parent.parent
EMPTY = "#include <uapi/linux/bpf.h>\nint program(struct xdp_md *ctx) { return XDP_PASS; }\n"
# The warnings are switched on after the kernel's own headers, which do not pass them.
PROGRAM = """\
#include <uapi/linux/bpf.h>
#pragma clang diagnostic error "-Wall"
#pragma clang diagnostic error "-Wextra"
#include "wire.h"

int program(struct xdp_md *ctx)
{
	struct wire_ethernet *ethernet = (void *)(long)ctx->data;
	struct wire_ipv4 *ipv4 = (void *)(ethernet + 1);
	struct wire_udp *udp = (void *)(ipv4 + 1);
	struct wire_bth *bth = (void *)(udp + 1);

	if ((void *)(bth + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	wire_bth_set_psn(bth, wire_bth_get_psn(bth) + 1);
	wire_ipv4_set_ecn(ipv4, WIRE_ECN_CE);
	wire_ethernet_set_dst_addr(ethernet, wire_ethernet_get_src_addr(ethernet));
	return wire_bth_get_opcode(bth) == WIRE_BTH_OPCODE_CNP ? XDP_DROP : XDP_TX;
}
"""


def test_xdp_program_compiles_and_loads():
    if os.geteuid() != 0:
        pytest.skip("loading an XDP program takes root")
    try:
        bcc.BPF(text=EMPTY.encode())
    except Exception as error:  # BCC raises a bare Exception
        pytest.skip(f"BCC compiles nothing here, likely for want of kernel headers: {error}")
    program = bcc.BPF(text=PROGRAM.encode(), cflags=[f"-I{WIRE}"])
    assert program.load_func(b"program", bcc.BPF.XDP).fd > 0
