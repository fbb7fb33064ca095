"""``python -m service.child FD PARENT``: the process that runs one user's ONNX model.

It speaks frames on the inherited socket; what it prints is the parent's log and no answer.
"""

import os
import sys

from service.child.belong_to_parent import belong_to_parent


def main(fd: int, parent: int) -> None:
    """Answer requests until the parent closes the socket or is gone."""
    belong_to_parent(parent)
    # Only now, for it takes long: numpy, onnxruntime, onnx and all that later requests need, since
    # a process that has locked itself down can import nothing more.
    from service.child.serve import serve  # noqa: PLC0415 - see above

    serve(fd)
    # Not sys.exit: a thread of the runtime that hangs could keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
