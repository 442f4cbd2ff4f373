"""Which interfaces of this network namespace have a carrier, told by the kernel (rtnetlink(7)) as it changes."""

import errno
import socket
import struct
from collections.abc import Callable

# linux/netlink.h, linux/rtnetlink.h, linux/if.h
_NETLINK_ROUTE, _RTMGRP_LINK = 0, 1
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK = 16, 17, 18
_NLM_F_REQUEST, _NLM_F_DUMP = 0x001, 0x300
_IFF_LOWER_UP = 1 << 16
_NLMSGHDR = struct.Struct("=IHHII")  # length with this header, type, flags, sequence, port
_IFINFOMSG = struct.Struct("=BxHiII")  # family, type, index, flags, change mask
_READ_BYTES = 1 << 16


class CarrierWatch:
    """Calls `changed(interface index, has carrier)` from `read`: for all interfaces after `start`, then on each change.

    An interface that is set down, or gone, has no carrier. `fileno` is readable when `read` has something to do.
    """

    def __init__(self, changed: Callable[[int, bool], None]) -> None:
        self._changed = changed
        kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        self._socket = socket.socket(socket.AF_NETLINK, kind, _NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def start(self) -> None:
        """Asks for all interfaces; `read` gets the answer."""
        body = _IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        length = _NLMSGHDR.size + len(body)
        self._socket.send(_NLMSGHDR.pack(length, _RTM_GETLINK, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0) + body)

    def read(self) -> None:
        """Takes what the kernel has to say."""
        while True:
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.start()  # changes were lost, so all are asked for again
                continue
            for index, up in carriers(data):
                self._changed(index, up)


def carriers(data: bytes) -> list[tuple[int, bool]]:
    """(interface index, has carrier) of every message about an interface; what is cut off ends the list."""
    found = []
    while len(data) >= _NLMSGHDR.size:
        length, kind, *_ = _NLMSGHDR.unpack_from(data)
        if not _NLMSGHDR.size <= length <= len(data):
            break
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= _NLMSGHDR.size + _IFINFOMSG.size:
            _, _, index, flags, _ = _IFINFOMSG.unpack_from(data, _NLMSGHDR.size)
            found.append((index, kind == _RTM_NEWLINK and bool(flags & _IFF_LOWER_UP)))
        data = data[(length + 3) & ~3 :]
    return found
