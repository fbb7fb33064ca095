"""The calibrated model as one file: the caller's model, the head, and the bin tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

from howsure.statistics.input_ranges import MOST_HALF_WIDTHS
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.measures import LEARNED, column
from service.graph.builder import GraphBuilder
from service.graph.description import OutputChoice
from service.graph.export_spec import ExportSpec
from service.graph.gate.versions import lower_ir_version
from service.graph.head import HeadTensors
from service.graph.inline import inline_functions
from service.graph.label_model import add_label_model, add_shares, add_uncertainty
from service.graph.learned import add_learned
from service.graph.lookup import add_lookup
from service.graph.measure_outputs import pass_through
from service.graph.noise.last_layer import MEASURE as LAST_LAYER
from service.graph.noise.last_layer_dropout import add_last_layer_dropout
from service.graph.proto import (
    PREFIX,
    drop_dead_nodes,
    output_names_as_sent,
    rename_values,
    value_names,
)
from service.graph.serving import append_head

NO_CLASS = -1
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ExportOutput:
    """An output tensor with a row per sample; ``columns`` is None for one number per sample."""

    tensor: str
    element_type: int
    columns: int | None = None


def add_answers(
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
    shown = {name: _or_nan(build, values, is_finite) for name, values in measured.items()}
    flat = {name: build.add("Reshape", v, build.integers([-1])) for name, v in shown.items()}
    answers = _classes(build, _first(build, head.top_classes, head, spec), is_finite, spec.n_top)
    scores = _or_nan(build, scores, is_finite)
    answers["topk_score"] = ExportOutput(scores, TensorProto.FLOAT, spec.n_top)
    if any(event.k == 1 for event in spec.events):  # in the order of the service's arrays
        answers["topk_probability"] = ExportOutput("", TensorProto.FLOAT, spec.n_top)
    for event in sorted(spec.events, key=lambda event: event.k):
        uncertainty = flat[event.column]
        found = add_lookup(build, event.table, uncertainty, shown[event.column])
        if event.k == 1:
            if shares is None:
                shares = _softmax_shares(build, all_scores, head, spec)
            listed = _class_probabilities(build, found.probability, shares, spec)
            listed = _or_nan(build, listed, is_finite)
            answers["topk_probability"] = ExportOutput(listed, TensorProto.FLOAT, spec.n_top)
        for name in ("probability", "lower", "upper"):
            answers[f"top{event.k}_{name}"] = ExportOutput(getattr(found, name), TensorProto.FLOAT)
        answers[f"top{event.k}_uncertainty"] = ExportOutput(uncertainty, TensorProto.FLOAT)
        answers[f"top{event.k}_bin"] = ExportOutput(found.bin, TensorProto.INT64)
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
    shown = build.add("Where", is_finite, ranked, build.integers([NO_CLASS]))
    first = build.add("Gather", shown, build.constant(np.array(0)), axis=1)
    return {
        "class": ExportOutput(first, TensorProto.INT64),
        "topk_class": ExportOutput(shown, TensorProto.INT64, n_top),
    }


def _flags(
    build: GraphBuilder, column: str, is_finite: str, spec: ExportSpec
) -> dict[str, ExportOutput]:
    """Return which rows exceed a threshold, or all rows if it is None.

    Rows that are not finite, and rows on another scale than the calibration set, exceed any.
    """
    known = reduce(partial(build.add, "And"), _known(build, spec), is_finite)
    endless = build.add("Where", known, column, build.number(np.inf))
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
    risks = {f"abstain_{risk}": beyond(at) for risk, at in spec.accept_thresholds}
    if risks:
        flags["abstain"] = next(iter(risks.values()))
    return flags | risks


def _known(build: GraphBuilder, spec: ExportSpec) -> Iterator[str]:
    """Yield which rows are within the bounds of an input, and of its columns, shape (n, 1)."""
    may_lack = {name for name, columns in spec.column_ranges if columns.missing}
    for name, found in spec.input_ranges:
        rows = build.add("Flatten", build.add("Cast", name, to=TensorProto.FLOAT), axis=1)
        below = build.add("Neg", rows)
        if name in may_lack:
            is_missing, lowest = build.add("IsNaN", rows), build.number(-LARGEST)
            rows, below = (
                build.add("Where", is_missing, lowest, values) for values in (rows, below)
            )
        most, below = build.largest(rows, [1]), build.largest(below, [1])
        least, highest, narrowest = found.bounds
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


METADATA = "howsure."


def build_export_graph(
    model: ModelProto,
    choice: OutputChoice,
    spec: ExportSpec,
    scalars: Mapping[str, str],
    *,
    last_layer_masks: NDArray[np.float32] | None = None,
) -> ModelProto:
    """Add calibrated probabilities to the outputs of the model, in place, and return it.

    Its own inputs, outputs and references to external weights are unchanged. The added outputs are
    ``class`` int64 (n,), ``topk_class`` int64 (n, m), ``topk_score`` and, where Top-1 is among the
    events, ``topk_probability`` float32 (n, m); for each
    event ``top{k}_probability``, ``_lower``, ``_upper`` and ``_uncertainty`` float32 (n,) and
    ``top{k}_bin`` int64 (n,); where Top-1 is among them ``out_of_distribution`` bool (n,), if it
    has a threshold, and for each risk ``abstain_{risk}`` bool (n,), the first also as ``abstain``.
    For a row that is not finite they are NaN, -1 and true. If the model already uses one of these
    names, all get a prefix, stored in the metadata as ``howsure.prefix``.

    Parameters
    ----------
    model
        From `load_onnx_model`, otherwise unchanged.
    scalars
        Outputs of the model with one number a sample, by column.
    last_layer_masks
        As for `build_serving_graph`.

    Raises
    ------
    InvalidConfig
        If there are masks, but no last layer.
    ValueError
        If an event has a k out of range.
    """
    if last_layer_masks is not None:
        inline_functions(model)
    graph = model.graph
    n_own = len(graph.node)
    sent = output_names_as_sent(graph)
    taken = {*value_names(graph), *sent.values()}
    formulas = [spec.label_model, *(event.learned for event in spec.events)]
    inputs = [name for formula in formulas if formula is not None for name in formula.columns]
    build, scores, head = append_head(model, choice, spec.head_top_k, inputs)
    # ONNX cannot infer the rank of the output of a tree ensemble, on which ours depend.
    known = ExportOutput(scores, build.element_type, choice.n_classes)
    graph.value_info.append(_declared(scores, known, _rows(graph)))
    columns = {**head.measures, **_passed_through(build, scalars)}
    if last_layer_masks is not None:
        passes = add_last_layer_dropout(build, graph, choice, last_layer_masks)
        columns[LAST_LAYER] = passes.variance
    shares, place = None, 0

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
    answers = add_answers(after, head, columns, spec, shares)
    prefix = _free_prefix(answers, taken)
    _give_out(graph, {prefix + name: answer for name, answer in answers.items()}, since=n_own)
    _restore_output_names(graph, sent)
    _set_metadata(model, {**spec.metadata, f"{METADATA}prefix": prefix})
    lower_ir_version(model)
    return model


def _passed_through(build: GraphBuilder, scalars: Mapping[str, str]) -> dict[str, str]:
    """Append measures from scalar outputs, shape (n, 1), and return them by column."""
    names = {column: build.new_name() for column in scalars}
    pass_through(build, {names[column]: tensor for column, tensor in scalars.items()})
    shape = build.integers([-1, 1])
    return {column: build.add("Reshape", name, shape) for column, name in names.items()}


def _free_prefix(names: Mapping[str, ExportOutput], taken: set[str]) -> str:
    """Return a prefix with which none of the names occurs in the model."""
    prefix, count = "", 1
    while any(prefix + name in taken for name in names):
        prefix = PREFIX if count == 1 else f"{PREFIX}{count}_"
        count += 1
    return prefix


def _give_out(graph: GraphProto, answers: Mapping[str, ExportOutput], *, since: int) -> None:
    """Make the answers outputs of the graph, in place, and drop our nodes that none of them needs.

    The nodes from ``since`` on are ours. All nodes of the model stay.
    """
    names: dict[str, str] = {}
    for name, answer in answers.items():
        if names.setdefault(answer.tensor, name) != name:
            graph.node.append(helper.make_node("Identity", [answer.tensor], [name]))
    for node in graph.node[since:]:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    rows = _rows(graph)
    graph.output.extend(_declared(name, answer, rows) for name, answer in answers.items())
    drop_dead_nodes(graph, since=since)


def _declared(name: str, answer: ExportOutput, rows: int | str) -> ValueInfoProto:
    shape = [rows] if answer.columns is None else [rows, answer.columns]
    return helper.make_tensor_value_info(name, answer.element_type, shape)


def _rows(graph: GraphProto) -> int | str:
    """Return the model's name of the number of samples, or the number itself if it is fixed."""
    initial = {tensor.name for tensor in graph.initializer}
    axes = [
        given.type.tensor_type.shape.dim[0]
        for given in graph.input
        if given.name not in initial and given.type.tensor_type.shape.dim
    ]
    size: int = max((axis.dim_value for axis in axes), default=0)
    names: list[str] = [axis.dim_param for axis in axes if axis.dim_param]
    return size if size > 0 else [*names, "N"][0]


def _restore_output_names(graph: GraphProto, names: Mapping[str, str]) -> None:
    taken = set(value_names(graph))
    free = {name: sent for name, sent in names.items() if sent not in taken}
    if free:
        rename_values(graph, free)


def _set_metadata(model: ModelProto, entries: Mapping[str, str]) -> None:
    """Set metadata; keep the model's own entries, but not those of an earlier calibration."""
    kept = [entry for entry in model.metadata_props if not entry.key.startswith(METADATA)]
    own = {entry.key: entry.value for entry in kept}
    helper.set_model_props(model, {**own, **entries})
