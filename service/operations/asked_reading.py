"""How a set is read, by the configuration that it came with or the calibration's own."""

from service.datasets import DatasetKind, Reading
from service.operations.config import CalibrationConfig
from service.operations.uploads import UploadedFile


def asked_reading(
    config: CalibrationConfig, labels: UploadedFile | None, *, kind: DatasetKind | None
) -> Reading:
    """Return how a set is read; ``kind`` is what an array without a name holds."""
    asked = config.preprocessing
    return Reading(
        preprocessing=None if asked is None else asked.resolved(),
        class_map=config.class_map,
        classes=config.classes,
        columns=config.columns,
        labels=None if labels is None else labels.path,
        kind=kind,
    )
