"""System calls that Python has no function for."""

import ctypes
import os
import sys
from functools import cache

PR_SET_NO_NEW_PRIVS = 38


class LockdownFailed(Exception):
    """The kernel refused a rule that it is said to know."""


def is_linux() -> bool:
    """Whether there is a Linux kernel to ask."""
    return sys.platform == "linux"


def machine() -> str:
    """Return the processor's architecture, as the kernel calls it."""
    return os.uname().machine


def system_call(number: int, *arguments: object) -> int:
    """Make a system call.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    libc = _libc()
    found = libc.syscall(ctypes.c_long(number), *arguments)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(found)


def gain_no_privileges() -> None:
    """Give up ever to gain privileges; without it the kernel takes no filter from such as us.

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    nothing = ctypes.c_ulong(0)
    if _libc().prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), nothing, nothing, nothing) != 0:
        raise LockdownFailed("no_new_privs")


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
