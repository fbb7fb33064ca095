"""Children of the runner, forked from one process that has imported what each of them needs.

A child that starts by itself imports numpy, onnx and onnxruntime, which is nearly all of its
start. A fork skips that, and with it the empty environment and the new program: tests of these
start real children. A fork may also run a program of this folder, as `scripted_child`.
"""

import array
import ctypes
import gc
import os
import socket
import subprocess
import sys
import threading
import traceback
from importlib import import_module

from service.runner.launch import environment, removed_folder
from service.runner.messages.channel import Channel
from service.runner.process import RunnerProcess, RunnerStartFailed

NAME = b"forked_children.py"
PR_SET_CHILD_SUBREAPER = 36
REFUSED = b"0"
LONGEST_MESSAGE = 4096
RUNNER = "service.child.__main__"
IMPORTED_BY_CHILDREN = (
    "service.child.serve",
    "service.child.fitting",
    "service.child.reading.read_sets",
    "service.child.requests.picture_rows",
    # What they import late.
    *("pyarrow.csv", "pyarrow.parquet", "service.child.lockdown.resource_limits"),
)


class ForkedProcess(subprocess.Popen):
    """A child that another process forked for this one: waited for and killed as its own."""

    def __init__(self, pid, stdout):
        # All that `Popen` keeps of a process that it has started.
        self.args = [NAME.decode()]
        self.pid = pid
        self.returncode = None
        self.stdin = self.stderr = None
        self.stdout = stdout
        self._child_created = True
        self._waitpid_lock = threading.Lock()


class ForkServer:
    """The process that forks; it starts with the first child and ends with this process."""

    def __init__(self):
        self._lock = threading.Lock()
        self._process = None
        self._control = None

    @property
    def pid(self):
        return None if self._process is None else self._process.pid

    def start_child(self):
        """Do what `RunnerProcess.start` does."""
        return self.start_program(RUNNER)

    def start_program(self, module, *arguments):
        """Run ``main(FD, *arguments)`` of a module in a fork; without arguments, ``main(FD, PID)``.

        No argument holds a line break.
        """
        ours, theirs = socket.socketpair()
        words = [str(os.getpid()), module, *map(str, arguments)]
        with theirs:
            try:
                process = self._fork("\n".join(words).encode(), theirs.fileno())
                return RunnerProcess(process, Channel(ours))
            except OSError as error:
                ours.close()
                raise RunnerStartFailed(f"no process: {error}") from error

    def close(self):
        with self._lock:
            if self._process is not None:
                self._control.close()
                self._process.wait()
                self._process = None

    def _fork(self, words, channel):
        with self._lock, removed_folder() as folder:
            self._start()
            printed, out = os.pipe()
            here = os.open(folder, os.O_RDONLY)
            try:
                pid = self._ask(words, channel, out, here)
            finally:
                os.close(out)
                os.close(here)
        return ForkedProcess(pid, os.fdopen(printed, "rb"))

    def _ask(self, words, *descriptors):
        # The kernel gives the orphan that the other process makes to this one, and later no others.
        _adopt_orphans(True)
        try:
            socket.send_fds(self._control, [words], descriptors)
            answer = self._control.recv(LONGEST_MESSAGE)
        finally:
            _adopt_orphans(False)
        if answer in (b"", REFUSED):
            raise OSError("no fork")
        return int(answer)

    def _start(self):
        if self._process is not None:
            return
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )


def _adopt_orphans(on):
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def serve_forks(control):
    """Fork a child for each message, until the other side closes the socket."""
    # All imports of a child; it forks with them.
    for module in IMPORTED_BY_CHILDREN:
        import_module(module)

    gc.collect()
    gc.freeze()
    while True:
        message, descriptors, *_ = socket.recv_fds(control, LONGEST_MESSAGE, 3)
        if not message:
            return
        try:
            answer = _fork_orphan(control, message.decode().split("\n"), descriptors)
        except OSError:
            answer = REFUSED
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(answer)


def _fork_orphan(control, words, descriptors):
    """Fork twice, the first of the two ends at once; return the other's process id."""
    said, saying = os.pipe()
    with os.fdopen(said, "rb") as answer:
        with os.fdopen(saying, "wb", buffering=0) as file:
            first = os.fork()
            if first == 0:
                if os.fork() != 0:
                    os._exit(0)
                answer.close()
                control.close()
                _be_child(words, file, *array.array("i", descriptors))
        os.waitpid(first, 0)
        return answer.read() or REFUSED


def _be_child(words, file, channel, out, folder):
    """Become what `service.runner.process` starts; never return."""
    parent, module, *arguments = words
    status = 1
    try:
        os.setsid()
        while os.getppid() != int(parent):
            os.sched_yield()
        for number in (1, 2):
            os.dup2(out, number)
        os.fchdir(folder)
        os.close(out)
        os.close(folder)
        file.write(str(os.getpid()).encode())
        file.close()
        import_module(module).main(channel, *arguments or [int(parent)])
    except SystemExit as exited:
        status = exited.code
    except BaseException:  # noqa: BLE001 - the loop of the other process must not go on here
        traceback.print_exc()
    finally:
        os._exit(status)


SERVER = ForkServer()

if __name__ == "__main__":
    serve_forks(socket.socket(fileno=int(sys.argv[1])))
