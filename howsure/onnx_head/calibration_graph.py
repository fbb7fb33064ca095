"""The calibration alone as an ONNX model: from a model's outputs to calibrated answers."""

from onnx import ModelProto, TensorProto, helper

from howsure.bins_document.document import BinsDocument
from howsure.labelled_outputs import SCORES
from howsure.onnx_head.answers import add_calibrated, give_out, read_inputs
from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.measures import HeadTensors, add_head, without_minus_zero
from howsure.onnx_head.spec import ExportSpec, export_events
from howsure.predictor import Predictor
from howsure.statistics.measures import SCORE, column
from howsure.statistics.softmax import n_recorded_classes

ROWS = "N"
LISTED = 10


def calibration_graph(document: BinsDocument, predictor: Predictor, *, opset: int) -> ModelProto:
    """Return a model with one input, called as the kind of the outputs: float32 (n, n_classes).

    Of scores it is float32 (n,). Its outputs are those of an exported calibrated model: classes,
    and for each event probability, interval, uncertainty and bin, with the flags of Top-1.

    """
    kind, n_classes = predictor.kind, predictor.n_classes
    is_scores = kind == SCORES
    shape: list[str | int] = [ROWS] if is_scores else [ROWS, n_classes]
    outputs = helper.make_tensor_value_info(kind, TensorProto.FLOAT, shape)
    graph = helper.make_graph([], "howsure", [outputs], [])
    build = GraphBuilder(graph, opset=opset, precision="float32")
    spec = _spec(document, predictor)
    measures: dict[str, str] = {}
    if kind == SCORES:
        head, measures = _head_of_scores(build, kind)
    else:
        head = add_head(
            build,
            kind,
            kind,
            n_classes,
            threshold=predictor.decision_threshold,
            n_top=n_recorded_classes(n_classes, predictor.top_k),
            top_k=predictor.top_k,
            inputs=read_inputs(spec),
        )
    give_out(graph, add_calibrated(graph, build, head, measures, spec), rows=ROWS)
    model = helper.make_model(
        graph,
        producer_name="howsure",
        ir_version=8,
        opset_imports=[helper.make_opsetid("", opset)],
    )
    helper.set_model_props(model, dict(spec.metadata))
    return model


def _head_of_scores(build: GraphBuilder, scores: str) -> tuple[HeadTensors, dict[str, str]]:
    """Return a head with the one class, an answer that is right, and the negative score."""
    rows = build.add("Reshape", scores, build.integers([-1, 1]))
    negative = without_minus_zero(build, build.add("Neg", rows))
    nothing = build.add("Less", rows, rows)
    first = build.add("Cast", nothing, to=TensorProto.INT64)
    ones = build.add("Add", build.add("Cast", nothing, to=TensorProto.FLOAT), build.number(1))
    return HeadTensors(first, ones, {}, 1), {column(SCORE, 1): negative}


def _spec(document: BinsDocument, predictor: Predictor) -> ExportSpec:
    is_scores = predictor.kind == SCORES
    return ExportSpec(
        events=export_events(predictor.events),
        n_top=1 if is_scores else min(LISTED, predictor.n_classes),
        n_classes=predictor.n_classes,
        ood_threshold=predictor.ood_threshold,
        least_uncertainty=predictor.least_uncertainty,
        accept_thresholds=tuple(
            (repr(risk), threshold) for risk, threshold in predictor.accept_thresholds.items()
        ),
        metadata={
            "howsure.name": document.calibration.name,
            "howsure.content_sha256": document.content_sha256,
        },
        label_model=predictor.label_model,
        top_k=predictor.top_k,
    )
