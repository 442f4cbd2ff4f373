"""The one home of ports, ids and paths that switches, controllers and tools must agree on."""

import time
from pathlib import Path

# What a running laboratory keeps for other commands: records, sockets, logs.
RUN_DIR = Path("/run/plait")

# Every process of a laboratory has its name in this environment variable, so that what a killed one left can be found.
LAB_VARIABLE = "PLAIT_LAB"

# Everything listens here unless told otherwise.
LISTEN_ADDRESS = "127.0.0.1"

# P4Runtime's registered port is the first switch's, so that clients find it unasked; the n-th switch has the n-th port
# after it. All stay below 32768: Linux hands out the ports above as local ends of connections, and 50051 with its
# successors, common in tutorials, is now and then taken by one.
GRPC_BASE_PORT = 9559

# BMv2's Thrift server, where it is built in.
THRIFT_BASE_PORT = 9090

# Ports of bit<9> programs that lead to no wire.
CPU_PORT = 510
DROP_PORT = 511

# Clone session of path traces: the last one that v1model's switches have, out of the way of people's own.
TRACE_SESSION = 32767

# The laboratory's controller. Other tools' usual ids, (0, 1) for one, stand back behind it.
ELECTION_ID = 10


def personal_election_id() -> int:
    """An election id above the controller's and every earlier personal one: the last person to ask may write."""
    return ELECTION_ID + time.time_ns()


def grpc_address(index: int) -> str:
    """Where the P4Runtime server of a fabric's switch number `index` (from 0) listens."""
    return f"{LISTEN_ADDRESS}:{GRPC_BASE_PORT + index}"
