"""Whether this kernel can sandbox a process."""

from service.child.lockdown.landlock import is_linux, landlock_version
from service.child.lockdown.seccomp import has_seccomp

LANDLOCK = "Landlock"
SECCOMP = "seccomp"


def missing() -> tuple[str, ...]:
    """Return the features that the kernel lacks; empty if it can sandbox a process."""
    if not is_linux():
        return (LANDLOCK, SECCOMP)
    there = {LANDLOCK: landlock_version() > 0, SECCOMP: has_seccomp()}
    return tuple(name for name, is_there in there.items() if not is_there)
