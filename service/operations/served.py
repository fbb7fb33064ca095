"""Finished calibrations held ready to answer: what was fitted never changes."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.core.bins.table import BinTable
from service.runner import ModelToServe, OnnxModelFiles
from service.storage.calibrations import CalibrationRef


@dataclass(frozen=True)
class ServedEvent:
    """How one event is answered: the measure, its column in the model's answer, its bins."""

    k: int
    measure: str
    column: str
    table: BinTable


@dataclass(frozen=True, eq=False)
class ServedOnnxModel:
    """What is to be run, and the bytes that a row of its inputs takes; free sizes count as 1.

    ``bytes_a_row`` is what bodies turned out to take, by media type.
    """

    to_serve: ModelToServe
    row_bytes: int
    bytes_a_row: dict[str, float] = field(default_factory=dict)

    @property
    def files(self) -> OnnxModelFiles:
        """Where the ONNX model lies."""
        return self.to_serve.files

    @property
    def resolved(self) -> Mapping[str, Any]:
        """How it is to be run."""
        return self.to_serve.resolved


@dataclass(frozen=True)
class ServedOperatingPoint:
    """A threshold on the uncertainty of Top-1 that was put in force, and what it is called."""

    name: str
    threshold: float


@dataclass(frozen=True, eq=False)
class ServedCalibration:
    """All that answering needs.

    The thresholds are those of the measure that serves Top-1: beyond ``ood_threshold`` a sample
    is unlike the calibration set, and beyond an entry of ``accept_thresholds``, by maximal risk,
    answering it would break that risk. None where there is none. ``operating_point`` is what
    somebody decided later, and all that may change: then there is another copy.
    """

    ref: CalibrationRef
    onnx_model: ServedOnnxModel | None
    class_names: Sequence[str]
    top_k: tuple[int, ...]
    ood_threshold: float | None
    accept_thresholds: Mapping[str, float | None]
    events: Sequence[ServedEvent]
    operating_point: ServedOperatingPoint | None = None

    @property
    def abstain_thresholds(self) -> Mapping[str, float | None]:
        """What answers are held against, by name: the operating point first, then each risk."""
        point = self.operating_point
        return ({} if point is None else {point.name: point.threshold}) | dict(
            self.accept_thresholds
        )


class ServedCache:
    """The most recently used calibrations, by id."""

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._kept: OrderedDict[uuid.UUID, ServedCalibration] = OrderedDict()

    def get(self, calibration_id: uuid.UUID) -> ServedCalibration | None:
        """Return the calibration if it is held."""
        with self._lock:
            found = self._kept.get(calibration_id)
            if found is not None:
                self._kept.move_to_end(calibration_id)
            return found

    def put(self, calibration: ServedCalibration) -> None:
        """Hold the calibration, and let go of the one longest unused."""
        with self._lock:
            self._kept[calibration.ref.id] = calibration
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def forget(self, calibration_id: uuid.UUID) -> None:
        """Let go of a calibration that was deleted."""
        with self._lock:
            self._kept.pop(calibration_id, None)
