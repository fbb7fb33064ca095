"""The answers to a few rows, made without arrays: to call numpy takes longer than the numbers do.

They are what `AnsweredRows` gives for the same rows, to the last bit.
"""

from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from service.bodies.oip.datatypes import DATATYPES
from service.bodies.oip.wanted import Wanted
from service.metrics import AnswerCounts
from service.operations.few_rows_plan import FewRowsPlan, Numbers
from service.operations.oip.answer import Column, InferAnswer, OutputTensors, packed
from service.operations.predictions import EventProbability, Predictions, prediction_rows
from service.operations.predictions_npz import predictions_npz
from service.operations.served import ServedCalibration
from service.runner import HeadMatrix
from service.storage.references import CalibrationRef

_plans: WeakKeyDictionary[ServedCalibration, FewRowsPlan] = WeakKeyDictionary()


def few_rows(served: ServedCalibration, matrix: HeadMatrix) -> "FewRows | None":
    """Return the answers to a matrix if they can be made here: few, and by bins alone."""
    if matrix.numbers is None:
        return None
    plan = _plans.get(served)
    if plan is None:
        plan = _plans[served] = FewRowsPlan.of(served, matrix.n_top)
    return FewRows(plan, matrix.numbers, matrix.places) if plan.suits else None


class FewRows:
    """Rows of any number of requests of one calibration, in whichever form each asks for."""

    def __init__(
        self, plan: FewRowsPlan, rows: list[list[float]], places: Mapping[str, int]
    ) -> None:
        self._plan = plan
        self._rows = rows
        self.n_rows = len(rows)
        self._uncertainty: list[Numbers] = []
        self._bins: list[list[int]] = []
        for table in plan.tables:
            place, edges = places[table.column], table.edges
            values = [row[place] for row in rows]
            self._uncertainty.append(values)
            self._bins.append([bisect_left(edges, value) for value in values])

    @property
    def ref(self) -> CalibrationRef:
        """Which calibration answered."""
        return self._plan.ref

    def json(self, start: int, stop: int) -> bytes:
        """Return the answer of ``POST /predict`` for the rows from ``start`` to before ``stop``."""
        return self._predictions.encode_answer(start, stop)

    def npz(self, start: int, stop: int) -> bytes:
        """Return the same as an .npz archive."""
        arrays = {}
        for name in self.names:
            datatype, sizes, _, numbers = self.numbers(name)
            array = np.array(numbers, DATATYPES[datatype]).reshape(self.n_rows, *sizes)
            arrays[name] = array[start:stop]
        return predictions_npz(arrays)

    def oip(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the same as tensors of the Open Inference Protocol.

        Raises
        ------
        InvalidInput
            If an output is asked for that there is not.
        """
        return self._tensors.encode_answer(start, stop, wanted)

    def count(self, counts: AnswerCounts, start: int, stop: int) -> None:
        """Count the rows from ``start`` to before ``stop`` by where they fell."""
        plan = self._plan
        counts.count(
            plan.ref.name,
            plan.ref.version,
            rows=stop - start,
            bins={
                table.k: (found[start:stop], len(table.probability))
                for table, found in zip(plan.tables, self._bins, strict=True)
            },
            out_of_distribution=self._count_above(plan.ood_threshold, start, stop),
            abstained={
                risk: found
                for risk, threshold in plan.accept_thresholds.items()
                if (found := self._count_above(threshold, start, stop)) is not None
            },
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs, in the order of `prediction_arrays`."""
        return self._plan.names

    def numbers(self, name: str) -> Column:
        """Return one of the arrays of `prediction_arrays`, as numbers."""
        part, which = self._plan.outputs[name]
        shown = self._plan.shown
        match part:
            case "class":
                found = Column("INT64", (), 1, [int(row[0]) for row in self._rows])
            case "topk_class":
                found = Column("INT64", (shown,), shown, [i for row in self._classes for i in row])
            case "topk_score":
                found = Column("FP32", (shown,), shown, [s for row in self._scores for s in row])
            case "uncertainty":
                found = Column("FP32", (), 1, self._uncertainty[which])
            case "bin":
                found = Column("INT64", (), 1, self._bins[which])
            case "flag":
                above = self._above(self._plan.thresholds[which])
                found = Column("BOOL", (), 1, [True] * self.n_rows if above is None else above)
            case _:
                of_bins = self._plan.tables[which].narrow[part]
                found = Column("FP32", (), 1, [of_bins[index] for index in self._bins[which]])
        return found

    def raw(self, name: str) -> Column:
        """Return the same as bytes."""
        return packed(self.numbers(name))

    def _above(self, threshold: float | None) -> list[bool] | None:
        top1 = self._plan.top1
        if threshold is None or top1 is None:
            return None
        return [value > threshold for value in self._uncertainty[top1]]

    def _count_above(self, threshold: float | None, start: int, stop: int) -> int | None:
        found = self._above(threshold)
        return None if found is None else sum(found[start:stop])

    @cached_property
    def _classes(self) -> list[list[int]]:
        shown = self._plan.shown
        return [[int(index) for index in row[:shown]] for row in self._rows]

    @cached_property
    def _scores(self) -> list[Numbers]:
        first = self._plan.n_top
        return [row[first : first + self._plan.shown] for row in self._rows]

    @cached_property
    def _predictions(self) -> Predictions:
        plan = self._plan
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
            for table, values, bins in zip(plan.tables, self._uncertainty, self._bins, strict=True)
        ]
        rows = prediction_rows(
            plan.class_names,
            self._classes,
            self._scores,
            events=events,
            unlike=self._above(plan.ood_threshold),
            abstain={risk: self._above(at) for risk, at in plan.accept_thresholds.items()},
        )
        return Predictions(plan.ref, rows)

    @cached_property
    def _tensors(self) -> OutputTensors:
        return OutputTensors(self.ref, self)
