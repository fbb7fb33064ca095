"""The runner's child with something worse than a model: ``python locked_child.py FD FILE HOW``.

Where the child would look at a stranger's bytes, it tries all that a model must not be able to do,
and answers what became of it, when it is asked to predict. FILE is one that it must not read; if it
is empty, the child is honest. HOW is ``cpu``, a version of Landlock, ``cuda`` for the rules that
hold there, or ``without NAME`` for a kernel that lacks it.
"""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from service.child import serve
from service.child.lockdown import landlock, seccomp
from service.child.lockdown.lock_down import lock_down
from service.child.serve import serve as serve_serve
from service.errors import InvalidOnnxModel
from service.runner.messages.frames import Kind

PTRACE_ATTACH = 16
CLONE3 = 435
PRCTL, PR_SET_PDEATHSIG = {"x86_64": 157, "aarch64": 167}[os.uname().machine], 1
TRUNCATE, SYNC, CAPGET, CAPSET = {"x86_64": (76, 162, 125, 126), "aarch64": (45, 81, 90, 91)}[
    os.uname().machine
]
F_SETSIG, F_SETOWN_EX, FIOSETOWN = 10, 15, 0x8901
IO_URING_SETUP, PIDFD_OPEN, MSEAL = 425, 434, 462
LIBC = ctypes.CDLL(None, use_errno=True)
FOUND = {}
SHELL = b"#!/bin/sh\n"


def libc(name, *arguments):
    if getattr(LIBC, name)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def execute_in_memory():
    program = os.memfd_create("program")
    os.write(program, SHELL)
    os.execve(program, ["program"], {})  # noqa: S606 - it is to fail


def fork():
    if os.fork() == 0:
        os._exit(0)


def on_another_thread(attempt):
    found = []
    thread = threading.Thread(target=lambda: found.append(outcome(attempt)))
    thread.start()
    thread.join()
    return found[0]


def too_large_file():
    opened = os.memfd_create("file")
    try:
        os.ftruncate(opened, 2**26)
    finally:
        os.close(opened)


def too_many_files():
    opened = []
    try:
        while len(opened) < 100:
            opened.append(os.memfd_create("file"))
    finally:
        for number in opened:
            os.close(number)


def no_capability():
    header, found = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    libc("syscall", CAPGET, ctypes.create_string_buffer(header), found)
    if any(found.raw[:8] + found.raw[12:20]):
        raise OSError(0, found.raw.hex())


def outcome(attempt):
    try:
        attempt()
    except OSError as error:
        return error.strerror
    except MemoryError:
        return "no memory"
    return "done"


def attempts(secret):
    parent = os.getppid()
    here = Path(f"/proc/self/fd/{os.memfd_create('own')}")
    return {
        "read a system's file": lambda: Path("/etc/passwd").read_bytes(),
        "read a file beside": lambda: Path(secret).read_bytes(),
        "write a file": lambda: Path(f"{secret}.new").write_bytes(b"1"),
        "overwrite a file": lambda: Path(secret).write_bytes(b"1"),
        "remove a file": lambda: Path(secret).unlink(),
        "truncate a file": lambda: os.truncate(secret, 0),
        "truncate a file past the library": lambda: libc(
            "syscall", TRUNCATE, str(secret).encode(), 0
        ),
        "own a descriptor's signals": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, parent),
        "own a descriptor's signals as a thread": lambda: fcntl.fcntl(0, F_SETOWN_EX, bytes(8)),
        "choose a descriptor's signal": lambda: fcntl.fcntl(0, F_SETSIG, 9),
        "own a descriptor's signals by ioctl": lambda: fcntl.ioctl(
            0, FIOSETOWN, struct.pack("i", parent)
        ),
        "type at a terminal": lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"),
        "bind the parent to a processor": lambda: os.sched_setaffinity(parent, [0]),
        "read the parent's limits": lambda: resource.prlimit(parent, resource.RLIMIT_CPU),
        "read the parent's priority": lambda: os.getpriority(os.PRIO_PROCESS, parent),
        "write all caches": lambda: libc("syscall", SYNC),
        "use a capability": lambda: libc("syscall", CAPSET, None, None),
        "change a file's mode": lambda: Path(secret).chmod(0o777),
        "list a folder": lambda: list(Path("/").iterdir()),
        "read the first process's environment": lambda: Path("/proc/1/environ").read_bytes(),
        "read its own environment": lambda: Path("/proc/self/environ").read_bytes(),
        "read its parent's memory": lambda: Path(f"/proc/{parent}/mem").open("rb"),
        "open a socket": lambda: socket.socket(socket.AF_INET),
        "open a socket of the machine": lambda: socket.socket(socket.AF_UNIX),
        "open a pair of sockets": socket.socketpair,
        "fork": fork,
        "run a program": lambda: subprocess.run(["/bin/true"], check=False),
        "become a program": lambda: os.execv("/bin/true", ["true"]),  # noqa: S606 - as above
        "become a program in memory": execute_in_memory,
        "signal the parent": lambda: os.kill(parent, signal.SIGCONT),
        "ask whether the parent is there": lambda: os.kill(parent, 0),
        "signal everybody": lambda: os.kill(-1, 0),
        "signal its group": lambda: os.kill(0, 0),
        "trace the parent": lambda: libc("ptrace", PTRACE_ATTACH, parent, None, None),
        "outlive the parent": lambda: libc("syscall", PRCTL, PR_SET_PDEATHSIG, 0, 0, 0, 0),
        "hold the parent": lambda: libc("syscall", PIDFD_OPEN, parent, 0),
        "use io_uring": lambda: libc("syscall", IO_URING_SETUP, 1, None),
        "use clone3": lambda: libc("syscall", CLONE3, None, 0),
        "use a call younger than the list": lambda: libc("syscall", MSEAL, None, 0, 0),
        "mount": lambda: libc("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "leave its namespaces": lambda: libc("unshare", 0x10000000),
        "take all memory": lambda: mmap.mmap(-1, 2**46),
        "make a large file": too_large_file,
        "open many files": too_many_files,
        "raise a limit": lambda: libc("setrlimit", resource.RLIMIT_CORE, bytes(16)),
        "move the processor seconds": lambda: libc(
            "prlimit", 0, resource.RLIMIT_CPU, bytes([255] * 16), None
        ),
        # What is to work.
        "read a library": lambda: Path(os.__file__).read_bytes(),
        "open a file in memory": here.read_bytes,
        "start a thread": lambda: threading.Thread(target=len, args=[""]).start(),
        "signal itself": lambda: os.kill(os.getpid(), 0),
        "read its own limits": lambda: resource.getrlimit(resource.RLIMIT_CPU),
        "bind itself to processors": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "have no capability": no_capability,
    }


def attack(secret):
    FOUND.update({name: outcome(attempt) for name, attempt in attempts(secret).items()})
    FOUND["read a file on another thread"] = on_another_thread(secret.read_bytes)
    raise InvalidOnnxModel("it was none")


def pretend_without(call):
    """Have the kernel answer as one that does not know a call."""
    landlock.gain_no_privileges()
    unknown = [seccomp.skip_unless_equal(call, 1), seccomp.UNKNOWN, seccomp.PASSED]
    seccomp.install([seccomp.load(seccomp.NUMBER), *unknown])


def main(channel, secret, how):
    """Be the child, in a process of its own or forked from the server of `forked_children`."""
    match how:
        case version if version.isdecimal():
            landlock.landlock_version = lambda: int(version)
        case "cuda":
            serve.lock_down = lambda rules, **_: lock_down(rules, uses_cuda=True)
        case "without Landlock":
            pretend_without(landlock.CREATE_RULESET)
        case "without seccomp":
            pretend_without(seccomp.SECCOMP[landlock.machine()])
    if secret:
        serve.load = lambda *_: attack(Path(secret))
        serve.ANSWERS = {**serve.ANSWERS, Kind.PREDICT: lambda *_: (FOUND, {})}
    serve_serve(channel)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
