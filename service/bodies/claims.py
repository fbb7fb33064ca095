"""What the header of an .npy array claims, held against the limits before memory is taken."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.bodies.tensors import check_shape
from service.datasets.npy_header import NpyHeader
from service.errors import InvalidDataset, InvalidInput

PLACE = "body"


@contextmanager
def as_input() -> Iterator[None]:
    """Turn what the readers of sets say of a body into what is said of requests."""
    try:
        yield
    except InvalidDataset as error:
        raise InvalidInput(error.message, error.violations) from error


def check_claims(header: NpyHeader, *, size: int, place: str, max_rows: int) -> None:
    """Refuse too many rows, an empty array, and a size that is not that of the ``size`` bytes.

    Raises
    ------
    InvalidInput, TooLarge
    """
    check_shape(header.shape, location=place, max_rows=max_rows)
    if header.file_bytes != size:
        raise InvalidInput.at(
            place,
            f"its header claims {header.file_bytes} bytes, shape {list(header.shape)} of "
            f"{header.dtype.name}, but there are {size}",
        )
