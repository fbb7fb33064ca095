"""The answers to a few rows, made without arrays: to call numpy takes longer than the numbers do.

They are what `AnsweredRows` gives for the same rows, to the last bit.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from service.bodies.oip.datatypes import DATATYPES
from service.bodies.oip.wanted import Wanted
from service.metrics import AnswerCounts
from service.operations.oip.answer import Column, InferAnswer, OutputTensors
from service.operations.predict import SHOWN_CLASSES
from service.operations.predictions import EventProbability, Predictions, prediction_rows
from service.operations.predictions_npz import predictions_npz
from service.operations.served import ServedCalibration, ServedEvent
from service.runner import HeadOutputs
from service.storage.references import CalibrationRef

FEW_ROWS = 24
Numbers = list[float]


@dataclass(frozen=True, slots=True)
class _Table:
    """One event's bins as Python numbers; those named ``narrow`` as a float32 has them."""

    k: int
    measure: str
    column: str
    edges: Numbers
    probability: Numbers
    interval: list[tuple[float, float]]
    narrow: Mapping[str, Numbers]

    @classmethod
    def of(cls, event: ServedEvent) -> "_Table":
        table = event.table
        lower = np.minimum(table.lower, table.probability)
        upper = np.maximum(table.upper, table.probability)
        ends = {"probability": table.probability, "lower": lower, "upper": upper}
        return cls(
            k=event.k,
            measure=event.measure,
            column=event.column,
            edges=table.edges[1:-1].tolist(),
            probability=table.probability.tolist(),
            interval=list(zip(lower.tolist(), upper.tolist(), strict=True)),
            narrow={name: values.astype(np.float32).tolist() for name, values in ends.items()},
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """A calibration as Python numbers."""

    tables: list[_Table]
    ood_threshold: float | None
    accept_thresholds: dict[str, float | None]

    @classmethod
    def of(cls, served: ServedCalibration) -> "_Plan":
        return cls(
            tables=[_Table.of(event) for event in served.events],
            ood_threshold=_narrow(served.ood_threshold),
            accept_thresholds={
                risk: _narrow(found) for risk, found in served.accept_thresholds.items()
            },
        )


_plans: WeakKeyDictionary[ServedCalibration, _Plan] = WeakKeyDictionary()


def is_for(served: ServedCalibration) -> bool:
    """Tell whether a calibration's answers can be made here: those of bins alone."""
    return all(event.table.lookup == "step" for event in served.events)


class FewRows:
    """Rows of any number of requests of one calibration, in whichever form each asks for."""

    def __init__(self, served: ServedCalibration, outputs: HeadOutputs) -> None:
        plan = _plans.get(served)
        if plan is None:
            plan = _plans[served] = _Plan.of(served)
        self._served = served
        self._plan = plan
        self._classes = outputs.top_classes[:, :SHOWN_CLASSES].tolist()
        self._scores = outputs.top_scores[:, :SHOWN_CLASSES].tolist()
        self._uncertainty: list[Numbers] = [
            outputs.uncertainty[t.column].tolist() for t in plan.tables
        ]
        self._bins = [
            [bisect_left(table.edges, value) for value in values]
            for table, values in zip(plan.tables, self._uncertainty, strict=True)
        ]
        self.n_rows = len(self._classes)

    @property
    def ref(self) -> CalibrationRef:
        """Which calibration answered."""
        return self._served.ref

    def json(self, start: int, stop: int) -> bytes:
        """Return the answer of ``POST /predict`` for the rows from ``start`` to before ``stop``."""
        return self._predictions.encode_answer(start, stop)

    def npz(self, start: int, stop: int) -> bytes:
        """Return the same as an .npz archive."""
        arrays = {
            name: np.array(numbers, DATATYPES[datatype]).reshape(self.n_rows, *sizes)[start:stop]
            for name, (datatype, sizes, _, numbers) in self._columns().items()
        }
        return predictions_npz(arrays)

    def oip(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the same as tensors of the Open Inference Protocol.

        Raises
        ------
        InvalidInput
            If an output is asked for that there is not.
        """
        return self._tensors.encode_answer(start, stop, wanted)

    def count(self, counts: AnswerCounts) -> None:
        """Count the rows by where they fell."""
        counts.count(
            self.ref.name,
            self.ref.version,
            rows=self.n_rows,
            bins={
                table.k: (found, len(table.probability))
                for table, found in zip(self._plan.tables, self._bins, strict=True)
            },
            out_of_distribution=None if self._unlike is None else sum(self._unlike),
            abstained={r: sum(flags) for r, flags in self._abstain.items() if flags is not None},
        )

    @cached_property
    def _of_top1(self) -> Numbers | None:
        found = zip(self._plan.tables, self._uncertainty, strict=True)
        return next((values for table, values in found if table.k == 1), None)

    def _above(self, threshold: float | None) -> list[bool] | None:
        if threshold is None or self._of_top1 is None:
            return None
        return [value > threshold for value in self._of_top1]

    @cached_property
    def _unlike(self) -> list[bool] | None:
        return self._above(self._plan.ood_threshold)

    @cached_property
    def _abstain(self) -> dict[str, list[bool] | None]:
        return {
            risk: self._above(threshold) for risk, threshold in self._plan.accept_thresholds.items()
        }

    @cached_property
    def _predictions(self) -> Predictions:
        events = [
            (
                f"top{table.k}",
                [
                    EventProbability(
                        table.probability[found], table.interval[found], table.measure, value, found
                    )
                    for value, found in zip(values, bins, strict=True)
                ],
            )
            for table, values, bins in zip(
                self._plan.tables, self._uncertainty, self._bins, strict=True
            )
        ]
        rows = prediction_rows(
            self._served.class_names,
            self._classes,
            self._scores,
            events=events,
            unlike=self._unlike,
            abstain=self._abstain,
        )
        return Predictions(self.ref, rows)

    @cached_property
    def _tensors(self) -> OutputTensors:
        return OutputTensors.of_numbers(self.ref, self._columns())

    def _columns(self) -> dict[str, Column]:
        """Return the arrays of `prediction_arrays`, as numbers."""
        shown = (len(self._classes[0]),)
        columns = {
            "class": Column("INT64", (), 1, [ranked[0] for ranked in self._classes]),
            "topk_class": Column("INT64", shown, *shown, _flat(self._classes)),
            "topk_score": Column("FP32", shown, *shown, _flat(self._scores)),
        }
        for table, values, bins in zip(
            self._plan.tables, self._uncertainty, self._bins, strict=True
        ):
            name = f"top{table.k}"
            for end, numbers in table.narrow.items():
                columns[f"{name}_{end}"] = Column("FP32", (), 1, [numbers[i] for i in bins])
            columns[f"{name}_uncertainty"] = Column("FP32", (), 1, values)
            columns[f"{name}_bin"] = Column("INT64", (), 1, bins)
        if self._of_top1 is not None:
            columns.update(self._flags())
        return columns

    def _flags(self) -> dict[str, Column]:
        flags = {}
        if self._unlike is not None:
            flags["out_of_distribution"] = self._unlike
        risks = {
            f"abstain_{risk}": [True] * self.n_rows if found is None else found
            for risk, found in self._abstain.items()
        }
        if risks:
            flags["abstain"] = next(iter(risks.values()))
        return {name: Column("BOOL", (), 1, found) for name, found in (flags | risks).items()}


def _flat(rows: list[list[Any]]) -> list[Any]:
    return rows[0] if len(rows) == 1 else [value for row in rows for value in row]


def _narrow(threshold: float | None) -> float | None:
    return None if threshold is None else float(np.float32(threshold))
