"""``python -m service.child FD PARENT``: the process that runs one user's ONNX model.

It exchanges frames on the inherited socket. The parent logs what it prints.
"""

import os
import sys

from service.child.exit_with_parent import exit_with_parent


def main(fd: int, parent: int) -> None:
    """Answer requests until the parent closes the socket or exits."""
    exit_with_parent(parent)
    # pyarrow imports pandas with its first array, if it is installed: half a second and 20 MB. None
    # makes that import fail, and pyarrow does without.
    sys.modules["pandas"] = None  # type: ignore[assignment]  # typed as holding modules only
    # This import takes long: it brings numpy, onnx and onnxruntime, which must be loaded before
    # the process is locked down.
    from service.child.serve import serve  # noqa: PLC0415 - see above

    serve(fd)
    # Not sys.exit: a hanging thread of the runtime could keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
