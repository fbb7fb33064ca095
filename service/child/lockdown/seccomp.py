"""The filter of system calls: it refuses listed calls, and calls newer than the list."""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from service.child.lockdown.landlock import LockdownFailed, machine, system_call
from service.child.lockdown.system_calls import (
    CALLS,
    FIRST_UNKNOWN,
    MACHINES,
    X86_64,
)

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6].
NUMBER = 0
ARCHITECTURE = 4
ARGUMENTS = 16

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
KILL_PROCESS = 0x80000000


def instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one BPF instruction (``struct sock_filter``); jumps are numbers to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def load(offset: int) -> bytes:
    """Load 32 bits of the call's data."""
    return instruction(LOAD, offset)


def low_half(argument: int) -> bytes:
    """Load the lower 32 bits of an argument, on a little-endian machine."""
    return load(ARGUMENTS + 8 * argument)


def high_half(argument: int) -> bytes:
    """Load the upper 32 bits of an argument."""
    return load(ARGUMENTS + 8 * argument + 4)


def answer(verdict: int) -> bytes:
    """End with a verdict."""
    return instruction(RETURN, verdict)


def skip_unless_equal(operand: int, count: int) -> bytes:
    """Skip ``count`` instructions unless the loaded value equals the operand."""
    return instruction(JUMP_EQUAL, operand, 0, count)


def skip_if_equal(operand: int, count: int) -> bytes:
    """Skip ``count`` instructions if the loaded value equals the operand."""
    return instruction(JUMP_EQUAL, operand, count, 0)


def skip_if_below(operand: int, count: int) -> bytes:
    """Skip ``count`` instructions if the loaded unsigned value is less than the operand."""
    return instruction(JUMP_AT_LEAST, operand, 0, count)


def skip_unless_bits(operand: int, count: int) -> bytes:
    """Skip ``count`` instructions if the loaded value has none of these bits."""
    return instruction(JUMP_ANY_BIT, operand, 0, count)


def assembled(program: Sequence[bytes]) -> bytes:
    """Return the bytes of a program."""
    return b"".join(program)


SET_MODE_FILTER = 1
GET_ACTION_AVAILABLE = 2
ALL_THREADS = 1  # SECCOMP_FILTER_FLAG_TSYNC
SECCOMP = {"x86_64": 317, "aarch64": 277}
# Calls of the x32 interface have this bit, and other numbers.
X32 = 0x40000000
CLONE_THREAD = 0x00010000
# Allowed options of prctl: names of threads and of memory, and huge pages.
PRCTL_ALLOWED = (15, 16, 41, 42, 0x53564D41)
# Commands that choose which process gets the signals of a descriptor, and what it gets: F_SETOWN,
# F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY. Landlock refuses such signals since version 6.
FCNTL_REFUSED = (8, 10, 15, 1024, 1026)
# The same by ioctl (FIOSETOWN, SIOCSPGRP), and input for terminals (TIOCSTI, TIOCLINUX).
IOCTL_REFUSED = (0x8901, 0x8902, 0x5412, 0x541C)
REFUSED = answer(ERRNO | errno.EPERM)
UNKNOWN = answer(ERRNO | errno.ENOSYS)
PASSED = answer(ALLOW)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def has_seccomp() -> bool:
    """Whether this kernel filters system calls, and their numbers are known for this machine."""
    if machine() not in MACHINES:
        return False
    verdict = ctypes.c_uint32(ERRNO)
    try:
        system_call(
            SECCOMP[machine()], GET_ACTION_AVAILABLE, ctypes.c_ulong(0), ctypes.byref(verdict)
        )
    except OSError:
        return False
    return True


def filter_system_calls() -> None:
    """Install the filter for all threads of this process, for good.

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    install(rules(machine(), own_pid=os.getpid()))


def install(instructions: Sequence[bytes]) -> None:
    """Install a program as the filter of all threads of this process.

    Raises
    ------
    LockdownFailed
        If the kernel refuses.
    """
    program = assembled(instructions)
    code = ctypes.create_string_buffer(program, len(program))
    packed = _Program(len(program) // 8, ctypes.addressof(code))
    try:
        thread = system_call(
            SECCOMP[machine()], SET_MODE_FILTER, ctypes.c_ulong(ALL_THREADS), ctypes.byref(packed)
        )
    except OSError as error:
        raise LockdownFailed(f"seccomp: {error}") from error
    if thread != 0:
        raise LockdownFailed("seccomp: a thread has a filter of its own")


def rules(name: str, *, own_pid: int) -> list[bytes]:
    """Return the program for a machine; a call from another architecture kills the process."""
    found = MACHINES[name]
    program = [
        load(ARCHITECTURE),
        skip_if_equal(found.audit, 1),
        answer(KILL_PROCESS),
        load(NUMBER),
    ]
    if name == X86_64:
        program += [skip_if_below(X32, 1), answer(KILL_PROCESS)]
    blocks = _by_arguments(own_pid)
    for call in CALLS:
        number = found.number(call)
        if number is not None and call not in blocks:
            program += [skip_unless_equal(number, 1), REFUSED]
    program += [skip_if_below(FIRST_UNKNOWN, 1), UNKNOWN]
    for call, block in blocks.items():
        number = found.number(call)
        if number is None:  # a rule that is left out would allow the call
            raise LookupError(call)
        program += [skip_unless_equal(number, len(block)), *block]
    return [*program, PASSED]


def _by_arguments(own_pid: int) -> dict[str, list[bytes]]:
    """Return blocks for calls that depend on their arguments; each ends with a verdict."""
    to_itself = [low_half(0), skip_unless_equal(own_pid, 1), PASSED, REFUSED]
    allowed = [part for option in PRCTL_ALLOWED for part in (skip_unless_equal(option, 1), PASSED)]
    of_itself = [low_half(0), skip_unless_equal(0, 1), PASSED, *to_itself[1:]]
    return {
        "clone": [low_half(0), skip_unless_bits(CLONE_THREAD, 1), PASSED, REFUSED],
        # A filter cannot read its arguments in memory; the C library falls back to `clone`.
        "clone3": [UNKNOWN],
        "kill": to_itself,
        "tgkill": to_itself,
        "prctl": [low_half(0), *allowed, REFUSED],
        "sched_setaffinity": of_itself,
        "fcntl": _refused(1, FCNTL_REFUSED),
        "ioctl": _refused(1, IOCTL_REFUSED),
        # Reading an own limit is allowed. Setting one passes a pointer as the third argument.
        "prlimit64": [
            low_half(2),
            skip_if_equal(0, 1),
            REFUSED,
            high_half(2),
            skip_if_equal(0, 1),
            REFUSED,
            *of_itself,
        ],
    }


def _refused(argument: int, values: Sequence[int]) -> list[bytes]:
    """Return a block that refuses a call with one of these values of an argument."""
    each = [part for value in values for part in (skip_unless_equal(value, 1), REFUSED)]
    return [low_half(argument), *each, PASSED]
