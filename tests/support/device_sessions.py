"""Graphs in sessions on a device of the caller's choice, in this process."""

import numpy as np
from graph_models import resolve

from service.child.onnx.session import OnnxSession
from service.child.onnx.watchdog import Watchdog
from service.graph.describe import describe_onnx_model
from service.graph.load import load_onnx_model
from service.graph.proto import PREFIX
from service.graph.serving import build_serving_graph


def session_on(device, model, watchdog=None):
    data = model.SerializeToString()
    return OnnxSession(data, weights={}, device=device, threads=1, watchdog=watchdog or Watchdog())


def head_on(device, model, feeds, *, kind=None, top_k=(1, 5), trial=None):
    """Return all that the serving graph answers on the device, named without their prefix."""
    choice = resolve(model, feeds if trial is None else trial, kind=kind)
    loaded = load_onnx_model(model.SerializeToString())
    describe_onnx_model(loaded)
    top_k = [k for k in top_k if k < choice.n_classes]
    graph = build_serving_graph(loaded, choice, top_k=top_k, with_scores=True)
    session = session_on(device, graph)
    answers = session.run(session.output_names, feeds, place="inputs")
    return {name.removeprefix(PREFIX): array for name, array in answers.items()}


def assert_same_classes(classes, expected, scores, *, gap):
    """Compare ranked classes where the expected scores are apart by more than a share ``gap``."""
    below = scores[:, :-1] > scores[:, 1:] * (1 + gap)
    apart = below & np.concatenate([np.ones_like(below[:, :1]), below[:, :-1]], axis=1)
    assert apart[:, 0].any()
    np.testing.assert_array_equal(classes[:, :-1][apart], expected[:, :-1][apart])
