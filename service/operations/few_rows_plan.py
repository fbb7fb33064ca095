"""A calibration as Python's numbers, from which a few rows are answered without arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from service.operations.predict import SHOWN_CLASSES, supplied_events
from service.operations.served import ServedCalibration, ServedEvent
from service.storage.references import CalibrationRef

Numbers: TypeAlias = list[float]


# What an output is of: the rows themselves, an event's bins, or a threshold.
OF_ROWS = ("class", "topk_class", "topk_score")
OF_BINS = ("probability", "lower", "upper")
OF_EVENTS = (*OF_BINS, "uncertainty", "bin")
FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Table:
    """One event's bins; those in ``narrow`` as a float32 has them."""

    k: int
    measure: str
    column: str
    edges: Numbers
    probability: Numbers
    interval: list[tuple[float, float]]
    narrow: Mapping[str, Numbers]

    @classmethod
    def of(cls, event: ServedEvent) -> "Table":
        """Return the bins of an event."""
        table = event.table
        lower = np.minimum(table.lower, table.probability)
        upper = np.maximum(table.upper, table.probability)
        ends = dict(zip(OF_BINS, (table.probability, lower, upper), strict=True))
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
class FewRowsPlan:
    """All that a few rows are answered from.

    Attributes
    ----------
    suits
        Whether answers can be made so: all events by steps, none by a measure that is supplied.
    n_top, shown
        How many top classes a row has, and how many of them are shown.
    top1
        Which table is Top-1's, if one is.
    outputs
        The outputs by name, in their order: what each is of, and which table or threshold.
    """

    ref: CalibrationRef
    class_names: Sequence[str]
    suits: bool
    n_top: int
    shown: int
    tables: list[Table]
    top1: int | None
    ood_threshold: float | None
    accept_thresholds: dict[str, float | None]
    thresholds: list[float | None]
    outputs: dict[str, tuple[str, int]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, served: ServedCalibration, n_top: int) -> "FewRowsPlan":
        """Return the plan of a calibration."""
        tables = [Table.of(event) for event in served.events]
        ood_threshold = _narrow(served.ood_threshold)
        accept = {risk: _narrow(found) for risk, found in served.abstain_thresholds.items()}
        top1 = next((place for place, table in enumerate(tables) if table.k == 1), None)
        outputs = dict(_outputs(tables, accept, has_ood=ood_threshold is not None, top1=top1))
        return cls(
            ref=served.ref,
            class_names=served.class_names,
            suits=all(event.table.lookup == "step" for event in served.events)
            and not supplied_events(served),
            n_top=n_top,
            shown=min(n_top, SHOWN_CLASSES),
            tables=tables,
            top1=top1,
            ood_threshold=ood_threshold,
            accept_thresholds=accept,
            thresholds=[ood_threshold, *accept.values()],
            outputs=outputs,
            names=tuple(outputs),
        )


def _outputs(
    tables: Sequence[Table],
    accept: Mapping[str, float | None],
    *,
    has_ood: bool,
    top1: int | None,
) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the outputs of `prediction_arrays` in their order."""
    for part in OF_ROWS:
        yield part, (part, 0)
    for place, table in enumerate(tables):
        for part in OF_EVENTS:
            yield f"top{table.k}_{part}", (part, place)
    if top1 is None:
        return
    if has_ood:
        yield "out_of_distribution", (FLAG, 0)
    if accept:
        yield "abstain", (FLAG, 1)
    for place, risk in enumerate(accept, 1):
        yield f"abstain_{risk}", (FLAG, place)


def _narrow(threshold: float | None) -> float | None:
    """Return a threshold as the float32 that arrays are held against."""
    return None if threshold is None else float(np.float32(threshold))
