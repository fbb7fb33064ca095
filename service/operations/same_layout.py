"""Whether an evaluation set is laid out as the calibration set is."""

from service.datasets import Dataset
from service.errors import InvalidDataset


def check_same_layout(calibration: Dataset, evaluation: Dataset) -> None:
    """Refuse an evaluation set of another kind, with other arrays, shapes or columns.

    Raises
    ------
    InvalidDataset
        Naming what differs.
    """
    ours, theirs = calibration.info, evaluation.info
    if ours.kind != theirs.kind:
        raise InvalidDataset.at(
            "evaluation", f"holds {theirs.kind} where calibration holds {ours.kind}"
        )
    if ours.arrays.keys() != theirs.arrays.keys():
        raise InvalidDataset.at(
            "evaluation",
            f"expected the arrays of calibration, {', '.join(ours.arrays)}, "
            f"got {', '.join(theirs.arrays)}",
        )
    if set(ours.supplied) - set(theirs.supplied):
        raise InvalidDataset.at(
            "evaluation",
            "expected the columns of calibration, "
            f"{', '.join(f'uncertainty_{name}' for name in ours.supplied)}",
        )
    for name, array in ours.arrays.items():
        if array.shape[1:] != theirs.arrays[name].shape[1:]:
            raise InvalidDataset.at(
                f"evaluation.{name}",
                f"expected rows of shape {list(array.shape[1:])} as in calibration, "
                f"got {list(theirs.arrays[name].shape[1:])}",
            )
