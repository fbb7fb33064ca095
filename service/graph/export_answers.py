"""What a calibrated file answers, as nodes after the head."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from service.graph.builder import GraphBuilder
from service.graph.export_spec import ExportSpec
from service.graph.head import HeadTensors
from service.graph.lookup import add_lookup

NO_CLASS = -1


@dataclass(frozen=True)
class Answer:
    """A tensor to give out, a row a sample; ``columns`` is None for one number each."""

    tensor: str
    element_type: int
    columns: int | None = None


def add_answers(
    build: GraphBuilder, head: HeadTensors, columns: Mapping[str, str], spec: ExportSpec
) -> dict[str, Answer]:
    """Append the answers, and return them by name, in the order of the file.

    Parameters
    ----------
    build
        Of float32.
    columns
        Measures of one number a row, by column.

    Raises
    ------
    ValueError
        If an event has a column that there is not.
    """
    missing = sorted({event.column for event in spec.events} - columns.keys())
    if missing:
        raise ValueError(f"there is no measure {missing}; there are {sorted(columns)}")
    scores = build.columns(build.add("Cast", head.top_scores, to=TensorProto.FLOAT), 0, spec.n_top)
    first = _flat(build, build.columns(scores, 0, 1))
    measured = {
        column: _flat(build, build.add("Cast", columns[column], to=TensorProto.FLOAT))
        for column in dict.fromkeys(event.column for event in spec.events)
    }
    is_finite = _all_finite(build, [first, *measured.values()])
    shown = {
        column: build.add("Where", is_finite, values, build.number(np.nan))
        for column, values in measured.items()
    }
    answers = _classes(build, head, scores, is_finite, spec.n_top)
    for event in sorted(spec.events, key=lambda event: event.k):
        found = add_lookup(build, event, measured[event.column], is_finite)
        for name in ("probability", "lower", "upper"):
            answers[f"top{event.k}_{name}"] = Answer(getattr(found, name), TensorProto.FLOAT)
        answers[f"top{event.k}_uncertainty"] = Answer(shown[event.column], TensorProto.FLOAT)
        answers[f"top{event.k}_bin"] = Answer(found.bin, TensorProto.INT64)
    top1 = (measured[event.column] for event in spec.events if event.k == 1)
    for uncertainty in top1:
        answers |= _flags(build, uncertainty, is_finite, spec)
    return answers


def _classes(
    build: GraphBuilder, head: HeadTensors, scores: str, is_finite: str, n_top: int
) -> dict[str, Answer]:
    rows = build.add("Reshape", is_finite, build.integers([-1, 1]))
    classes = build.columns(head.top_classes, 0, n_top)
    classes = build.add("Where", rows, classes, build.integers([NO_CLASS]))
    scores = build.add("Where", rows, scores, build.number(np.nan))
    return {
        "class": Answer(_flat(build, build.columns(classes, 0, 1)), TensorProto.INT64),
        "topk_class": Answer(classes, TensorProto.INT64, n_top),
        "topk_score": Answer(scores, TensorProto.FLOAT, n_top),
    }


def _flags(
    build: GraphBuilder, uncertainty: str, is_finite: str, spec: ExportSpec
) -> dict[str, Answer]:
    """Return which rows lie beyond a threshold, which itself lies within; all where it is None."""
    is_broken = build.add("Not", is_finite)

    def beyond(threshold: float | None) -> Answer:
        if threshold is None:
            return Answer(build.add("Or", is_broken, is_finite), TensorProto.BOOL)
        is_above = build.add("Greater", uncertainty, build.number(threshold))
        return Answer(build.add("Or", is_broken, is_above), TensorProto.BOOL)

    flags = {}
    if spec.ood_threshold is not None:
        flags["out_of_distribution"] = beyond(spec.ood_threshold)
    risks = {f"abstain_{risk}": beyond(at) for risk, at in spec.accept_thresholds}
    if risks:
        flags["abstain"] = next(iter(risks.values()))
    return flags | risks


def _all_finite(build: GraphBuilder, columns: Iterable[str]) -> str:
    """Return which rows are finite in all columns: no comparison with NaN is true."""
    endless = build.number(np.inf)
    found = [build.add("Less", build.add("Abs", column), endless) for column in columns]
    both = found[0]
    for other in found[1:]:
        both = build.add("And", both, other)
    return both


def _flat(build: GraphBuilder, column: str) -> str:
    return build.add("Reshape", column, build.integers([-1]))
