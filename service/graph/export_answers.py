"""What a calibrated file answers, as nodes after the head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from service.graph.builder import GraphBuilder
from service.graph.export_spec import ExportSpec
from service.graph.head import HeadTensors
from service.graph.lookup import add_lookup

NO_CLASS = -1
LARGEST = float(np.finfo(np.float32).max)


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
        Measures of one number a row, shape (n, 1), by column.

    Raises
    ------
    ValueError
        If an event has a column that there is not.
    """
    used = list(dict.fromkeys(event.column for event in spec.events))
    missing = sorted(set(used) - columns.keys())
    if missing:
        raise ValueError(f"there is no measure {missing}; there are {sorted(columns)}")
    scores = _first(build, build.add("Cast", head.top_scores, to=TensorProto.FLOAT), head, spec)
    measured = {name: build.add("Cast", columns[name], to=TensorProto.FLOAT) for name in used}
    proofs = list(measured.values())
    if not head.measures.keys() & used:
        proofs.append(build.columns(scores, 0, 1))
    is_finite = _all_finite(build, proofs)
    shown = {name: _or_nan(build, values, is_finite) for name, values in measured.items()}
    flat = {name: build.add("Reshape", v, build.integers([-1])) for name, v in shown.items()}
    answers = _classes(build, _first(build, head.top_classes, head, spec), is_finite, spec.n_top)
    scores = _or_nan(build, scores, is_finite)
    answers["topk_score"] = Answer(scores, TensorProto.FLOAT, spec.n_top)
    for event in sorted(spec.events, key=lambda event: event.k):
        uncertainty = flat[event.column]
        found = add_lookup(build, event, uncertainty, shown[event.column])
        for name in ("probability", "lower", "upper"):
            answers[f"top{event.k}_{name}"] = Answer(getattr(found, name), TensorProto.FLOAT)
        answers[f"top{event.k}_uncertainty"] = Answer(uncertainty, TensorProto.FLOAT)
        answers[f"top{event.k}_bin"] = Answer(found.bin, TensorProto.INT64)
    for event in spec.events:
        if event.k == 1:
            answers |= _flags(build, measured[event.column], is_finite, spec)
    return answers


def _first(build: GraphBuilder, ranked: str, head: HeadTensors, spec: ExportSpec) -> str:
    """Return the columns of the classes that are shown."""
    return ranked if head.n_top == spec.n_top else build.columns(ranked, 0, spec.n_top)


def _or_nan(build: GraphBuilder, values: str, is_finite: str) -> str:
    return build.add("Where", is_finite, values, build.number(np.nan))


def _classes(build: GraphBuilder, ranked: str, is_finite: str, n_top: int) -> dict[str, Answer]:
    shown = build.add("Where", is_finite, ranked, build.integers([NO_CLASS]))
    first = build.add("Gather", shown, build.constant(np.array(0)), axis=1)
    return {
        "class": Answer(first, TensorProto.INT64),
        "topk_class": Answer(shown, TensorProto.INT64, n_top),
    }


def _flags(build: GraphBuilder, column: str, is_finite: str, spec: ExportSpec) -> dict[str, Answer]:
    """Return which rows lie beyond a threshold, which itself lies within; all where it is None."""
    endless = build.add("Where", is_finite, column, build.number(np.inf))
    uncertainty = build.add("Reshape", endless, build.integers([-1]))

    def beyond(threshold: float | None) -> Answer:
        # Below infinity, which stands for the rows that are not finite: they are beyond any.
        limit = -np.inf if threshold is None else min(threshold, LARGEST)
        return Answer(build.add("Greater", uncertainty, build.number(limit)), TensorProto.BOOL)

    flags = {}
    if spec.ood_threshold is not None:
        flags["out_of_distribution"] = beyond(spec.ood_threshold)
    risks = {f"abstain_{risk}": beyond(at) for risk, at in spec.accept_thresholds}
    if risks:
        flags["abstain"] = next(iter(risks.values()))
    return flags | risks


def _all_finite(build: GraphBuilder, columns: Sequence[str]) -> str:
    """Return which rows are finite in all columns: no comparison with NaN is true."""
    endless = build.number(np.inf)
    found = [build.add("Less", build.add("Abs", column), endless) for column in columns]
    both = found[0]
    for other in found[1:]:
        both = build.add("And", both, other)
    return both
