"""Labels against the number of classes."""

import numpy as np

from service.core.arrays import Labels
from service.errors import InvalidDataset


def check_label_range(labels: Labels, location: str, n_classes: int) -> None:
    """Refuse a label that is no class of the model.

    Raises
    ------
    InvalidDataset
        Naming the first such row.
    """
    bad = labels >= n_classes
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{location}.labels[{row}]",
            f"expected a class from 0 to {n_classes - 1}, got {int(labels[row])}; "
            "labels count the classes from 0",
        )
