"""Names of classes in a set against the classes of the model."""

from service.datasets import DatasetInfo
from service.errors import InvalidConfig, InvalidDataset, shown
from service.operations.config import CalibrationConfig


def check_class_map(info: DatasetInfo, config: CalibrationConfig, n_classes: int) -> None:
    """Refuse a map with an index that is no class, and an order that leaves classes open.

    Raises
    ------
    InvalidConfig
        Naming the first such key.
    InvalidDataset
        If classes were numbered by the order of their names and there are others than the
        model's number: which of its classes is missing cannot be known.
    """
    for name, index in (config.class_map or {}).items():
        if index >= n_classes:
            raise InvalidConfig.at(
                f"config.class_map.{shown(name)[1:-1]}",
                f"expected a class from 0 to {n_classes - 1}, got {index}",
            )
    found = info.class_map or {}
    if info.is_numbered_by_name and len(found) != n_classes:
        raise InvalidDataset.at(
            "calibration",
            f"holds {len(found)} classes by name where the model has {n_classes}, so their order "
            "does not tell which is which; send config.class_map",
        )


def check_same_classes(calibration: DatasetInfo, evaluation: DatasetInfo) -> None:
    """Refuse an evaluation set in which a name stands for another class.

    Raises
    ------
    InvalidDataset
        Naming the first such class.
    """
    ours = calibration.class_map or {}
    for name, index in (evaluation.class_map or {}).items():
        if ours.get(name, index) != index or (ours and name not in ours):
            raise InvalidDataset.at(
                "evaluation",
                f"its class {shown(name)} is number {index} by the order of names, and "
                f"{ours.get(name, 'none')} in calibration; send config.class_map",
            )


def class_names(info: DatasetInfo, n_classes: int) -> list[str] | None:
    """Return the names that a set gives the classes, if it names each once."""
    by_index = {index: name for name, index in (info.class_map or {}).items()}
    if len(by_index) != n_classes or len(info.class_map or {}) != n_classes:
        return None
    return [by_index[index] for index in range(n_classes)]
