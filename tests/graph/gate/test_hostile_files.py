"""Damaged files: every one gives the service's own error, or a graph for ONNX Runtime to judge."""

from pathlib import Path

import numpy as np
import pytest
from classifier_files import FILES as CLASSIFIERS
from graph_models import constant, node, value
from onnx import TensorProto, helper, load_from_string

from service.errors import ServiceError
from service.graph.describe import describe_onnx_model
from service.graph.description import OutputChoice
from service.graph.gate.external_weights import attach_external_data
from service.graph.load import load_onnx_model
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

FOLDER = Path(__file__).parents[2] / "data" / "onnx"


def zipped():
    """Return a classifier with a map of its scores, and an If whose output nothing reads."""
    model = load_from_string(CLASSIFIERS["sklearn, network"]().data)
    always = value("a", (), TensorProto.BOOL)
    then = helper.make_graph([node("Identity", ["howsure_flag"], ["a"])], "then", [], [always])
    branches = {"then_branch": then, "else_branch": then}
    model.graph.node.append(node("If", ["howsure_flag"], ["unused"], **branches))
    model.graph.initializer.append(constant("howsure_flag", True, np.bool_))
    return model.SerializeToString()


def walk_through(data):
    """Take a file through everything that happens before ONNX Runtime sees it."""
    model = load_onnx_model(data)
    describe_onnx_model(model)
    attach_external_data(model, {"torch_dynamo_18_external.onnx.data": bytes(5504)})
    plan = plan_output(model)
    probe_graph(model, plan)
    choice = OutputChoice(plan.name, "logits", plan.tensor, "a test", n_classes=7)
    build_serving_graph(model, choice, top_k=(1, 5), with_scores=True).SerializeToString()


FILES = [zipped(), *(path.read_bytes() for path in sorted(FOLDER.glob("*.onnx")))]


@pytest.mark.parametrize("which", range(len(FILES)))
def test_intact_files_get_through(which):
    walk_through(FILES[which])


@pytest.mark.parametrize("which", range(len(FILES)))
def test_damage_ends_in_our_own_errors(which):
    rng = np.random.default_rng(which)
    refused = 0
    for _ in range(60):
        damaged = np.frombuffer(FILES[which], np.uint8).copy()
        # The first bytes hold the structure: half of the damage goes there.
        reach = len(damaged) if rng.random() < 0.5 else min(400, len(damaged))
        damaged[rng.integers(0, reach, size=rng.integers(1, 4))] = rng.integers(0, 256)
        try:
            walk_through(damaged.tobytes()[: rng.integers(reach, len(damaged) + 1)])
        except ServiceError:
            refused += 1
    assert refused > 0
