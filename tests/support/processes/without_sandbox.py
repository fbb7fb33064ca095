"""The `howsure` command on a kernel that lacks features: ``without_sandbox.py MISSING WORD``."""

import sys

from locked_child import pretend_without

from service.child.lockdown import landlock, seccomp
from service.cli import main

CALLS = {"Landlock": landlock.CREATE_RULESET, "seccomp": seccomp.SECCOMP[landlock.machine()]}

if __name__ == "__main__":
    # A filter can be installed only while the call for filters is known, so that one is last.
    for name in sys.argv[1].split(" and "):
        pretend_without(CALLS[name])
    sys.argv[1:2] = []
    main()
