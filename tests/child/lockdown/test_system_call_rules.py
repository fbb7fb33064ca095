"""The filter's programs, for each architecture, run by an interpreter of the kernel's rules."""

import struct
from errno import ENOSYS, EPERM

import pytest

from service.child.lockdown.seccomp import assembled, rules
from service.child.lockdown.system_calls import CALLS, MACHINES

OWN = 4242
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386 = 0x40000003
# What the program may return, by the kernel's numbers.
ALLOWED, KILLED, ERROR = 0x7FFF0000, 0x80000000, 0x50000
# By the kernel's headers, not by the service's list.
NUMBERS = {
    "x86_64": {"read": 0, "mmap": 9, "socket": 41, "clone": 56, "execve": 59, "kill": 62,
               "prctl": 157, "tgkill": 234, "openat": 257, "prlimit64": 302, "execveat": 322},
    "aarch64": {"openat": 56, "read": 63, "kill": 129, "tgkill": 131, "prctl": 167, "socket": 198,
                "clone": 220, "execve": 221, "mmap": 222, "prlimit64": 261, "execveat": 281},
}  # fmt: skip


def verdict(machine, number, *arguments, audit=None):
    """Run the program over a call, as seccomp does."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    signed = number - 2**32 if number >= 2**31 else number
    data = struct.pack("=iIQ6Q", signed, audit or AUDIT[machine], 0, *padded)
    program = list(struct.iter_unpack("=HBBI", assembled(rules(machine, own_pid=OWN))))
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += if_true if loaded == operand else if_false
            case 0x35:
                at += if_true if loaded >= operand else if_false
            case 0x45:
                at += if_true if loaded & operand else if_false
            case 0x06:
                return operand


OTHERS = (0, 1, OWN - 1, 2**32 - 1, 2**32 - OWN)


VERDICTS = [
    *((call, (), ALLOWED) for call in ("read", "mmap", "openat")),
    *((call, (), ERROR | EPERM) for call in ("socket", "execve", "execveat")),
    ("clone", (0x3D0F00,), ALLOWED),  # as the C library starts a thread
    ("clone", (0x1200011,), ERROR | EPERM),  # as it forks
    # A process signals only itself, reads its limits, and names its threads.
    *((call, (OWN, 6), ALLOWED) for call in ("kill", "tgkill")),
    *((call, (pid, 6), ERROR | EPERM) for call in ("kill", "tgkill") for pid in OTHERS),
    ("prlimit64", (0, 7, 0, 2**40), ALLOWED),
    ("prlimit64", (0, 7, 2**40, 0), ERROR | EPERM),
    ("prlimit64", (0, 7, 16, 0), ERROR | EPERM),
    ("prctl", (15,), ALLOWED),
    ("prctl", (1, 0), ERROR | EPERM),  # it is not to outlive its parent
    *((number, (), ERROR | ENOSYS) for number in (435, 457, 500, 2**30 - 1)),
]


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize(("call", "arguments", "expected"), VERDICTS)
def test_calls_are_allowed_refused_or_unknown(machine, call, arguments, expected):
    assert verdict(machine, NUMBERS[machine].get(call, call), *arguments) == expected


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_by_other_numbers_end_the_process(machine):
    (other,) = {*AUDIT} - {machine}
    for audit in (I386, AUDIT[other]):
        assert verdict(machine, NUMBERS[machine]["read"], audit=audit) == KILLED
    if machine == "x86_64":
        assert verdict(machine, 0x40000000) == verdict(machine, 2**32 - 1) == KILLED


def test_system_calls_have_unique_numbers():
    for machine in MACHINES.values():
        numbers = [n for n in map(machine.number, CALLS) if n is not None]
        assert len(numbers) == len(set(numbers))
