"""Programs for the kernel's packet filter, as seccomp runs them over each system call."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Instruction:
    """One of them; the jumps count what is skipped."""

    code: int
    operand: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        """Return it as ``struct sock_filter``."""
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.operand)


def load(offset: int) -> Instruction:
    """Load 32 bits of the call's data."""
    return Instruction(LOAD, offset)


def low_half(argument: int) -> Instruction:
    """Load the lower 32 bits of an argument, on a little-endian machine."""
    return load(ARGUMENTS + 8 * argument)


def high_half(argument: int) -> Instruction:
    """Load the upper 32 bits of an argument."""
    return load(ARGUMENTS + 8 * argument + 4)


def answer(verdict: int) -> Instruction:
    """End with a verdict."""
    return Instruction(RETURN, verdict)


def skip_unless_equal(operand: int, count: int) -> Instruction:
    """Skip some instructions unless what was loaded is this."""
    return Instruction(JUMP_EQUAL, operand, 0, count)


def skip_if_equal(operand: int, count: int) -> Instruction:
    """Skip some instructions if what was loaded is this."""
    return Instruction(JUMP_EQUAL, operand, count, 0)


def skip_if_below(operand: int, count: int) -> Instruction:
    """Skip some instructions if what was loaded is less, as a number without a sign."""
    return Instruction(JUMP_AT_LEAST, operand, 0, count)


def skip_unless_bits(operand: int, count: int) -> Instruction:
    """Skip some instructions if what was loaded has none of these bits."""
    return Instruction(JUMP_ANY_BIT, operand, 0, count)


def assembled(program: Sequence[Instruction]) -> bytes:
    """Return a program as the kernel takes it."""
    return b"".join(instruction.packed() for instruction in program)
