"""A kernel that refuses socket filters to the service, as some do to users without privileges.

As a program, ``python without_socket_filters.py WORDS``, it is the command ``howsure WORDS``.
"""

import ctypes
import os
import socket
import struct
import sys

from service.child.lockdown import landlock, seccomp
from service.cli import main

SETSOCKOPT = {"x86_64": 54, "aarch64": 208}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SO_ATTACH_FILTER = 26


def refuse_socket_filters() -> None:
    """Let this thread, and all that it starts, attach no filter to a socket."""
    program = seccomp.assembled(
        [
            seccomp.load(seccomp.NUMBER),
            seccomp.skip_unless_equal(SETSOCKOPT[os.uname().machine], 5),
            seccomp.low_half(1),
            seccomp.skip_unless_equal(socket.SOL_SOCKET, 3),
            seccomp.low_half(2),
            seccomp.skip_unless_equal(SO_ATTACH_FILTER, 1),
            seccomp.REFUSED,
            seccomp.PASSED,
        ]
    )
    landlock.gain_no_privileges()
    held = ctypes.create_string_buffer(program)
    described = struct.pack("HP", len(program) // 8, ctypes.addressof(held))
    if ctypes.CDLL(None).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described) != 0:
        raise OSError("the kernel takes no filter of system calls")


if __name__ == "__main__":
    refuse_socket_filters()
    sys.argv = ["howsure", *sys.argv[1:]]
    main()
