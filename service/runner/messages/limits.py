"""Limits of a set of samples."""

from dataclasses import dataclass

MEBIBYTE = 1024**2
GIBIBYTE = 1024**3


@dataclass(frozen=True)
class DatasetLimits:
    """Limits that are checked on what a file claims, before anything is allocated for it.

    Attributes
    ----------
    max_samples : int
        Rows of one file.
    max_classes : int
        Columns of uploaded logits or probabilities, and the bound on any label.
    max_inflated_bytes : int
        All arrays of one file, decompressed; also counted while they are read.
    max_row_bytes : int
        One sample over all arrays: what a batch of one row takes.
    max_threads : int
        Threads that decode pictures.
    """

    max_samples: int = 10_000_000
    max_classes: int = 100_000
    max_inflated_bytes: int = 64 * GIBIBYTE
    max_row_bytes: int = 256 * MEBIBYTE
    max_threads: int = 4
