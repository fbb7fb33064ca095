"""The rows of a request to a child, cut into chunks."""

from collections.abc import Iterator, Mapping

from service.runner.messages.frames import Array

CHUNK_ROWS = 256
# Rows of a RECORD request: several runs, each made into records during the next.
RECORDED_ROWS = 2048


def chunks(
    inputs: Mapping[str, Array],
    *,
    fixed_batch: int | None,
    start: int,
    at_a_time: int = CHUNK_ROWS,
) -> Iterator[tuple[slice, dict[str, Array]]]:
    """Yield ranges of rows with their arrays, small enough that other callers get their turn.

    ``start`` is the number of the first row. The cuts fall on the same rows of a set however it
    is divided between calls, and there the child's batches end as well.
    """
    n_rows = len(next(iter(inputs.values())))
    batch = fixed_batch or 1
    size = batch * -(-at_a_time // batch)
    first = 0
    while first < n_rows:
        rows = slice(first, min(first + size - (start + first) % size, n_rows))
        yield rows, {name: array[rows] for name, array in inputs.items()}
        first = rows.stop
