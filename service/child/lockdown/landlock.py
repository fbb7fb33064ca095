"""Landlock: only listed files can be read; TCP and signals to other processes are blocked."""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PR_SET_NO_NEW_PRIVS = 38


class LockdownFailed(Exception):
    """The kernel refused a rule that it supports."""


def is_linux() -> bool:
    """Whether the kernel is Linux."""
    return sys.platform == "linux"


def machine() -> str:
    """Return the kernel's name of the processor architecture."""
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
    """Set no_new_privs, which the kernel requires before an ordinary process installs a filter.

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    nothing = ctypes.c_ulong(0)
    if _libc().prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), nothing, nothing, nothing) != 0:
        raise LockdownFailed("no_new_privs")


# struct __user_cap_header_struct, version 3, this thread; then two empty __user_cap_data_struct.
_CAPABILITIES = (0x20080522, 0)
CAPSET = {"x86_64": 126, "aarch64": 91}


def drop_capabilities() -> None:
    """Give up what root may do beyond an ordinary user; this thread, and those it starts.

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    if machine() not in CAPSET:
        return
    header = ctypes.create_string_buffer(struct.pack("=Ii", *_CAPABILITIES))
    try:
        system_call(CAPSET[machine()], header, ctypes.create_string_buffer(24))
    except OSError as error:
        raise LockdownFailed(f"capset: {error}") from error


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # on every machine
TELL_VERSION = 1
PATH_BENEATH = 1

WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
IOCTL_DEV = 1 << 15
# Number of file access rights by version of the kernel interface, starting with version 0.
FILE_RIGHTS = (0, 13, 14, 15, 15, 16)
TCP_SINCE, BIND_AND_CONNECT = 4, 0b11
SCOPES_SINCE, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 0b11

READ_ONLY = READ_FILE | READ_DIR
A_DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV


def landlock_version() -> int:
    """Return the version of the kernel interface; 0 if it is missing or disabled."""
    try:
        return system_call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(TELL_VERSION))
    except OSError:
        return 0


def restrict_files(readable: Iterable[Path], devices: Iterable[Path] = ()) -> None:
    """Allow this thread, and those it starts, to read files below these paths only.

    Open files stay open. Files in memory (`memfd_create`) can still be opened.

    Parameters
    ----------
    readable
        Folders or files; missing ones are left out.
    devices
        Device files, which may also be written and controlled (ioctl).

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    version = landlock_version()
    try:
        ruleset = _ruleset(version)
        try:
            for path in readable:
                _allow(ruleset, path, READ_ONLY)
            for path in devices:
                _allow(ruleset, path, A_DEVICE & _all_rights(version))
            system_call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
        finally:
            os.close(ruleset)
    except OSError as error:
        raise LockdownFailed(f"Landlock: {error}") from error


def _ruleset(version: int) -> int:
    network = BIND_AND_CONNECT if version >= TCP_SINCE else 0
    scopes = ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPES_SINCE else 0
    # An older kernel accepts unknown fields if they are zero.
    attributes = struct.pack("=QQQ", _all_rights(version), network, scopes)
    return system_call(
        CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    )


def _all_rights(version: int) -> int:
    known: int = (1 << FILE_RIGHTS[min(version, len(FILE_RIGHTS) - 1)]) - 1
    return known


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # missing, or not readable
    try:
        if not path.is_dir():
            rights &= ~READ_DIR
        rule = struct.pack("=Qi", rights, opened)
        system_call(
            ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), rule, ctypes.c_uint32(0)
        )
    finally:
        os.close(opened)
