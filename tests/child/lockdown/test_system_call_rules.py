"""The filter's programs, for each architecture, run by an interpreter of the kernel's rules."""

import errno
import struct

import pytest

from service.child.lockdown.seccomp import assembled, rules
from service.child.lockdown.system_calls import CALLS, MACHINES

OWN = 4242
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386 = 0x40000003
ALLOWED, KILLED = "allowed", "killed"
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
    data = struct.pack("=iIQ6Q", _signed(number), audit or AUDIT[machine], 0, *padded)
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
                return _read(operand)


def _signed(number):
    return number - 2**32 if number >= 2**31 else number


def _read(operand):
    if operand == 0x7FFF0000:
        return ALLOWED
    if operand == 0x80000000:
        return KILLED
    assert operand >> 16 == 0x5
    return operand & 0xFFFF


@pytest.fixture(params=sorted(AUDIT))
def machine(request):
    return request.param


@pytest.mark.parametrize("call", ["read", "mmap", "openat"])
def test_calls_that_each_program_needs_are_allowed(machine, call):
    assert verdict(machine, NUMBERS[machine][call]) == ALLOWED


@pytest.mark.parametrize("call", ["socket", "execve", "execveat"])
def test_calls_that_no_model_needs_are_refused(machine, call):
    assert verdict(machine, NUMBERS[machine][call]) == errno.EPERM


def test_threads_may_be_started_but_not_processes(machine):
    clone = NUMBERS[machine]["clone"]
    assert verdict(machine, clone, 0x3D0F00) == ALLOWED  # as the C library starts a thread
    assert verdict(machine, clone, 0x1200011) == errno.EPERM  # as it forks
    assert verdict(machine, 435) == errno.ENOSYS


@pytest.mark.parametrize("call", ["kill", "tgkill"])
@pytest.mark.parametrize("target", [0, 1, OWN - 1, 2**32 - 1, 2**32 - OWN])
def test_a_process_may_signal_only_itself(machine, call, target):
    assert verdict(machine, NUMBERS[machine][call], OWN, 6) == ALLOWED
    assert verdict(machine, NUMBERS[machine][call], target, 6) == errno.EPERM


def test_limits_may_be_read_and_not_set(machine):
    prlimit = NUMBERS[machine]["prlimit64"]
    assert verdict(machine, prlimit, 0, 7, 0, 2**40) == ALLOWED
    assert verdict(machine, prlimit, 0, 7, 2**40, 0) == errno.EPERM
    assert verdict(machine, prlimit, 0, 7, 16, 0) == errno.EPERM


def test_a_thread_may_be_named_but_not_outlive_its_parent(machine):
    prctl = NUMBERS[machine]["prctl"]
    assert verdict(machine, prctl, 15) == ALLOWED
    assert verdict(machine, prctl, 1, 0) == errno.EPERM


@pytest.mark.parametrize("number", [457, 500, 2**30 - 1])
def test_an_unknown_call_does_not_exist(machine, number):
    assert verdict(machine, number) == errno.ENOSYS


def test_calls_by_other_numbers_end_the_process(machine):
    (other,) = {*AUDIT} - {machine}
    for audit in (I386, AUDIT[other]):
        assert verdict(machine, NUMBERS[machine]["read"], audit=audit) == KILLED
    if machine == "x86_64":
        assert verdict(machine, 0x40000000) == KILLED
        assert verdict(machine, 2**32 - 1) == KILLED


def test_system_calls_have_unique_numbers():
    for found in MACHINES.values():
        numbers = [n for n in map(found.number, CALLS) if n is not None]
        assert len(numbers) == len(set(numbers))
