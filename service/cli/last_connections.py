"""Ends a listening socket so that no connection is lost which a client believes it has."""

import ctypes
import socket
import struct
import sys
from collections.abc import Iterable

# <asm/socket.h>; Python has no name for it.
_SO_ATTACH_FILTER = 26
# Classic BPF over the TCP header: a packet with SYN and without ACK is dropped, others are kept.
_DROP_NEW = (
    (0x30, 0, 0, 13),  # load the byte of flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # yes: drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # no: keep it
)


def begin_no_more(listeners: Iterable[socket.socket]) -> None:
    """Have the kernel begin no further connection; those begun can still be accepted.

    Closing a socket that listens resets every connection that is not accepted yet, though its
    client may have sent a request. One that is not begun is tried again a second later, and refused
    then. Where there are no such filters, what is begun just before the end is lost.
    """
    if sys.platform != "linux":
        return
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *op) for op in _DROP_NEW))
    option = struct.pack("HP", len(_DROP_NEW), ctypes.addressof(program))
    for listener in listeners:
        if listener.family in (socket.AF_INET, socket.AF_INET6):
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, option)
