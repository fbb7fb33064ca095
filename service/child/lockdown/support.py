"""Whether this kernel can lock a process in."""

from service.child.lockdown.landlock import is_linux, landlock_version
from service.child.lockdown.seccomp import has_seccomp

LANDLOCK = "Landlock"
SECCOMP = "seccomp"


def missing() -> tuple[str, ...]:
    """Return the names of what the kernel lacks; none where a process can be locked in."""
    if not is_linux():
        return (LANDLOCK, SECCOMP)
    there = {LANDLOCK: landlock_version() > 0, SECCOMP: has_seccomp()}
    return tuple(name for name, is_there in there.items() if not is_there)
