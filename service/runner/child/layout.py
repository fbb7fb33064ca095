"""What the JSON before raw tensors says, for all bodies that begin with the same JSON."""

from collections.abc import Mapping

import numpy as np

from service.bodies.oip.wanted import Wanted
from service.runner.frames import Array, Buffer


class Layout:
    """Where the rows of such a body lie.

    Parameters
    ----------
    head
        The JSON.
    sent
        The arrays behind it, by name in the order of their bytes.
    rows
        The same in the order of the model's inputs.
    wanted
        What such a request wants back.

    Attributes
    ----------
    n_bytes
        The length of a body.
    n_rows
        How many rows it has.
    """

    def __init__(
        self, head: bytes, sent: Mapping[str, Array], rows: Mapping[str, Array], wanted: Wanted
    ) -> None:
        self.head = head
        self.wanted = wanted
        self.n_rows = len(next(iter(rows.values())))
        places, end = {}, len(head)
        for name, array in sent.items():
            places[name] = end
            end += array.nbytes
        self.n_bytes = end
        # Of each tensor its name, its place in a body, and the shape of one row.
        self._tensors = [(name, f"f{at}", a.shape[1:]) for at, (name, a) in enumerate(rows.items())]
        self._body = np.dtype(
            {
                "names": [field for _, field, _ in self._tensors],
                "formats": [(array.dtype, array.shape) for array in rows.values()],
                "offsets": [places[name] for name in rows],
                "itemsize": end,
            }
        )

    def begins_all(self, bodies: Buffer) -> bool:
        """Whether the bodies after the first begin with the same JSON, too."""
        head, size = self.head, len(self.head)
        for start in range(self.n_bytes, len(bodies), self.n_bytes):
            if bytes(bodies[start : start + size]) != head:
                return False
        return True

    def read(self, bodies: Buffer) -> dict[str, Array]:
        """Return the rows of whole bodies, one after the other."""
        found = np.frombuffer(bodies, self._body)
        rows = {}
        for name, field, shape in self._tensors:
            # A copy: where the bytes lie numbers may not lie as the runtime wants them.
            rows[name] = found[field].copy().reshape(-1, *shape)
        return rows
