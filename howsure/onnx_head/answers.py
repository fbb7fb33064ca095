"""Answers as outputs of a graph: classes, probabilities, intervals and flags."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.label_model import add_label_model, add_shares, add_uncertainty
from howsure.onnx_head.learned import add_learned
from howsure.onnx_head.liveness import drop_dead_nodes
from howsure.onnx_head.lookup import add_lookup
from howsure.onnx_head.measures import HeadTensors
from howsure.onnx_head.spec import ExportSpec
from howsure.statistics.input_ranges import MOST_HALF_WIDTHS
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.measures import LEARNED, column

NO_CLASS = -1
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ExportOutput:
    """An output tensor with a row per sample; ``columns`` is None for one number per sample."""

    tensor: str
    element_type: int
    columns: int | None = None


def read_inputs(spec: ExportSpec) -> list[str]:
    """Return the inputs of the learned measures, which a head must have in this order."""
    formulas = [spec.label_model, *(event.learned for event in spec.events)]
    return [name for formula in formulas if formula is not None for name in formula.columns]


def add_calibrated(
    graph: GraphProto,
    build: GraphBuilder,
    head: HeadTensors,
    measures: Mapping[str, str],
    spec: ExportSpec,
) -> dict[str, ExportOutput]:
    """Append learned measures and answers, and return the outputs by name, in their order.

    ``measures`` are those that the head does not have, shape (n, 1), by column.
    """
    columns, shares, place = {**head.measures, **measures}, None, 0

    def own_inputs(formula: LabelModel | LearnedModel) -> str:
        nonlocal place
        start, place = place, place + len(formula.columns)
        return build.add(
            "Cast", build.columns(head.inputs or "", start, place), to=TensorProto.FLOAT
        )

    if spec.label_model is not None:
        of_labels = spec.label_model
        own = own_inputs(of_labels) if of_labels.columns else None
        odds = add_label_model(build, of_labels, head, own)
        shares = add_shares(build, of_labels, odds)
        for event in spec.events:
            if event.column == column(LEARNED, event.k):
                columns[event.column] = add_uncertainty(build, of_labels, odds, event.k)
    for event in spec.events:
        if event.learned is not None:
            own = own_inputs(event.learned)
            columns[event.column] = add_learned(build, event.learned, own, head.top_classes)
    after = GraphBuilder(graph, opset=build.opset, precision="float32", stem="answer")
    return _add_answers(after, head, columns, spec, shares)


def _add_answers(
    build: GraphBuilder,
    head: HeadTensors,
    columns: Mapping[str, str],
    spec: ExportSpec,
    shares: str | None,
) -> dict[str, ExportOutput]:
    """Append the outputs, and return them by name, in the order of the file.

    Parameters
    ----------
    build
        Of float32.
    columns
        Measures of one number a row, shape (n, 1), by column.
    shares
        Those of the model of the labels, if that serves Top-1.
    """
    used = list(dict.fromkeys(event.column for event in spec.events))
    all_scores = build.add("Cast", head.top_scores, to=TensorProto.FLOAT)
    scores = _first(build, all_scores, head, spec)
    measured = {name: build.add("Cast", columns[name], to=TensorProto.FLOAT) for name in used}
    proofs = list(measured.values())
    if not head.measures.keys() & used:
        proofs.append(build.columns(scores, 0, 1))
    is_finite = _all_finite(build, proofs)
    matrices = {name: _or_nan(build, values, is_finite) for name, values in measured.items()}
    flat = {name: build.add("Reshape", v, build.integers([-1])) for name, v in matrices.items()}
    answers = _classes(build, _first(build, head.top_classes, head, spec), is_finite, spec.n_top)
    scores = _or_nan(build, scores, is_finite)
    answers["topk_score"] = ExportOutput(scores, TensorProto.FLOAT, spec.n_top)
    if any(event.k == 1 for event in spec.events):  # in the order of the service's arrays
        answers["topk_probability"] = ExportOutput("", TensorProto.FLOAT, spec.n_top)
    for event in sorted(spec.events, key=lambda event: event.k):
        uncertainty = flat[event.column]
        lookup = add_lookup(build, event.table, uncertainty, matrices[event.column])
        if event.k == 1:
            if shares is None:
                shares = _softmax_shares(build, all_scores, head, spec)
            listed = _class_probabilities(build, lookup.probability, shares, spec)
            listed = _or_nan(build, listed, is_finite)
            answers["topk_probability"] = ExportOutput(listed, TensorProto.FLOAT, spec.n_top)
        for name in ("probability", "lower", "upper"):
            answers[f"top{event.k}_{name}"] = ExportOutput(getattr(lookup, name), TensorProto.FLOAT)
        answers[f"top{event.k}_uncertainty"] = ExportOutput(uncertainty, TensorProto.FLOAT)
        answers[f"top{event.k}_bin"] = ExportOutput(lookup.bin, TensorProto.INT64)
    for event in spec.events:
        if event.k == 1:
            answers |= _flags(build, measured[event.column], is_finite, spec)
    return answers


def _softmax_shares(build: GraphBuilder, scores: str, head: HeadTensors, spec: ExportSpec) -> str:
    """Return `howsure.statistics.label_model.class_list.class_shares` of the softmax in float64."""
    wide = build.add("Cast", scores, to=TensorProto.DOUBLE)
    one, nothing = build.constant(np.array(1.0)), build.constant(np.array(0.0))
    rest = build.row_sums(build.columns(wide, 1, head.n_top))
    if head.n_top < spec.n_classes:
        beyond = build.add("Sub", one, build.columns(wide, 0, 1))
        rest = build.add("Where", build.add("Less", rest, beyond), beyond, rest)
    # 0 / 1 where nothing is left to share; NaN stays.
    is_empty = build.add("Equal", rest, nothing)
    return build.add("Div", wide, build.add("Where", is_empty, one, rest))


def _class_probabilities(
    build: GraphBuilder, probability: str, shares: str, spec: ExportSpec
) -> str:
    """Return `class_probability_array` of the same module in float64, shape (n, n_top)."""
    column = build.add("Reshape", probability, build.integers([-1, 1]))
    first = build.add("Cast", column, to=TensorProto.DOUBLE)
    left = build.add("Sub", build.constant(np.array(1.0)), first)
    others = build.add("Mul", build.columns(shares, 1, spec.n_top), left)
    return build.add("Cast", build.add("Concat", first, others, axis=1), to=TensorProto.FLOAT)


def _first(build: GraphBuilder, ranked: str, head: HeadTensors, spec: ExportSpec) -> str:
    """Return the columns of the first ``n_top`` classes."""
    return ranked if head.n_top == spec.n_top else build.columns(ranked, 0, spec.n_top)


def _or_nan(build: GraphBuilder, values: str, is_finite: str) -> str:
    return build.add("Where", is_finite, values, build.number(np.nan))


def _classes(
    build: GraphBuilder, ranked: str, is_finite: str, n_top: int
) -> dict[str, ExportOutput]:
    classes = build.add("Where", is_finite, ranked, build.integers([NO_CLASS]))
    first = build.add("Gather", classes, build.constant(np.array(0)), axis=1)
    return {
        "class": ExportOutput(first, TensorProto.INT64),
        "topk_class": ExportOutput(classes, TensorProto.INT64, n_top),
    }


def _flags(
    build: GraphBuilder, column: str, is_finite: str, spec: ExportSpec
) -> dict[str, ExportOutput]:
    """Return which rows exceed a threshold, or all rows if it is None.

    Rows that are not finite, and rows on another scale than the calibration set, exceed any.
    """
    is_usual = reduce(partial(build.add, "And"), _rows_in_range(build, spec), is_finite)
    endless = build.add("Where", is_usual, column, build.number(np.inf))
    uncertainty = build.add("Reshape", endless, build.integers([-1]))

    def beyond(threshold: float | None) -> ExportOutput:
        # Finite, so that infinity exceeds every threshold.
        limit = -np.inf if threshold is None else min(threshold, LARGEST)
        return ExportOutput(
            build.add("Greater", uncertainty, build.number(limit)), TensorProto.BOOL
        )

    flags = {}
    if spec.ood_threshold is not None:
        flags["out_of_distribution"] = beyond(spec.ood_threshold)
    if spec.least_uncertainty is not None and flags:
        least = build.add("Less", uncertainty, build.number(spec.least_uncertainty))
        either = build.add("Or", flags["out_of_distribution"].tensor, least)
        flags["out_of_distribution"] = ExportOutput(either, TensorProto.BOOL)
    risks = {f"abstain_{risk}": beyond(at) for risk, at in spec.accept_thresholds}
    if risks:
        flags["abstain"] = next(iter(risks.values()))
    return flags | risks


def _rows_in_range(build: GraphBuilder, spec: ExportSpec) -> Iterator[str]:
    """Yield which rows are within the bounds of an input, and of its columns, shape (n, 1)."""
    may_lack = {name for name, columns in spec.column_ranges if columns.missing}
    for name, input_range in spec.input_ranges:
        rows = build.add("Flatten", build.add("Cast", name, to=TensorProto.FLOAT), axis=1)
        below = build.add("Neg", rows)
        if name in may_lack:
            is_missing, lowest = build.add("IsNaN", rows), build.number(-LARGEST)
            rows, below = (
                build.add("Where", is_missing, lowest, values) for values in (rows, below)
            )
        most, below = build.largest(rows, [1]), build.largest(below, [1])
        least, highest, narrowest = input_range.bounds
        for value, limit in ((most, highest), (below, -least)):
            yield build.add("Not", build.add("Greater", value, build.number(limit)))
        spread = build.add("Add", most, below)
        yield build.add("Not", build.add("Less", spread, build.number(narrowest)))
    for name, columns in spec.column_ranges:
        centre, factor = map(build.numbers, columns.scaling)
        rows = build.add("Cast", name, to=TensorProto.FLOAT)
        apart = build.add("Abs", build.add("Mul", build.add("Sub", rows, centre), factor))
        # Missing values are far outside where the calibration set has none.
        empty = build.numbers(np.where(columns.is_complete, LARGEST, 0.0))
        most = build.largest(build.add("Where", build.add("IsNaN", rows), empty, apart), [1])
        yield build.add("Not", build.add("Greater", most, build.number(MOST_HALF_WIDTHS)))


def _all_finite(build: GraphBuilder, columns: Sequence[str]) -> str:
    """Return which rows are finite in all columns; comparisons with NaN are false."""
    endless = build.number(np.inf)
    finite = [build.add("Less", build.add("Abs", column), endless) for column in columns]
    return reduce(partial(build.add, "And"), finite)


def give_out(
    graph: GraphProto, answers: Mapping[str, ExportOutput], *, rows: int | str, since: int = 0
) -> None:
    """Make the answers outputs of the graph, in place, and drop our nodes that none of them needs.

    ``rows`` is the name of the number of samples, or the number itself. The nodes from ``since`` on
    are ours. All nodes of the model stay.
    """
    names: dict[str, str] = {}
    for name, answer in answers.items():
        if names.setdefault(answer.tensor, name) != name:
            graph.node.append(helper.make_node("Identity", [answer.tensor], [name]))
    for node in graph.node[since:]:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    graph.output.extend(declared(name, answer, rows) for name, answer in answers.items())
    drop_dead_nodes(graph, since=since)


def declared(name: str, answer: ExportOutput, rows: int | str) -> ValueInfoProto:
    """Return the declaration of an output."""
    shape = [rows] if answer.columns is None else [rows, answer.columns]
    return helper.make_tensor_value_info(name, answer.element_type, shape)
