"""Takes a process its rights, before it looks at a stranger's ONNX model.

What it has open it keeps: the socket to its parent, and a pipe for what it prints.
"""

from pathlib import Path

from service.errors import SandboxUnavailable
from service.runner.child.lockdown.kernel import LockdownFailed, gain_no_privileges, is_linux
from service.runner.child.lockdown.landlock import restrict_files
from service.runner.child.lockdown.readable import devices, readable
from service.runner.child.lockdown.seccomp import filter_system_calls
from service.runner.child.lockdown.support import LANDLOCK, SECCOMP, missing
from service.runner.sandbox import SandboxRules

HOW_TO_ALLOW = (
    "use a kernel that has it (Linux 5.13 or later with Landlock, on x86-64 or aarch64), or set "
    "HOWSURE_ALLOW_UNSANDBOXED=true if whoever may upload models may also run programs here"
)


def lock_down(rules: SandboxRules, *, uses_cuda: bool) -> None:
    """Give up all that a model does not need; nothing gives it back.

    To be called with one thread running, since Landlock binds the thread that asks for it and
    those that it starts; with CUDA the driver's own threads are there already.

    Raises
    ------
    SandboxUnavailable
        If the kernel cannot do it, and it is not allowed to go on without.
    """
    lacking = missing()
    if lacking and not rules.allow_unsandboxed:
        raise SandboxUnavailable(
            f"The service runs no ONNX model where its process cannot be locked in: the kernel "
            f"lacks {' and '.join(lacking)}; {HOW_TO_ALLOW}."
        )
    if not is_linux():
        return
    try:
        _lock_down(rules, lacking, uses_cuda=uses_cuda)
    except (LockdownFailed, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"The process that was to run the ONNX model could not be locked in: {error}."
        ) from error


def _lock_down(rules: SandboxRules, lacking: tuple[str, ...], *, uses_cuda: bool) -> None:
    # Linux alone has it.
    from service.runner.child.lockdown.resource_limits import limit_resources  # noqa: PLC0415

    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1 and not uses_cuda:
        raise LockdownFailed(f"{threads} threads are running")
    limit_resources(
        memory_bytes=rules.memory_bytes, file_bytes=rules.file_bytes, uses_cuda=uses_cuda
    )
    gain_no_privileges()
    if LANDLOCK not in lacking:
        restrict_files(readable(uses_cuda=uses_cuda), devices(uses_cuda=uses_cuda))
    if SECCOMP not in lacking:
        filter_system_calls()
