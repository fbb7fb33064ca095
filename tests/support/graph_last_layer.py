"""Running dropout before the last layer, in a graph and in numpy."""

import numpy as np
from graph_models import constant, make_model, node, run_session, value
from graph_noise import N_CLASSES, N_INPUTS, load, logits_choice, spread_of
from scipy.special import log_softmax

from service.graph.serving import build_serving_graph

VARIANCE = "howsure_last_layer_dropout_variance"
LOGS = "howsure_last_layer_log_probabilities"

_rng = np.random.default_rng(9)
KERNEL = _rng.normal(size=(N_CLASSES, 3, 1, 1))


def ending(*nodes, initializers=(), shape=("N", N_INPUTS), **others):
    """Return a model that makes y of x, past a rectifier that makes h, with weights W."""
    weights = [constant("W", _rng.normal(size=(N_INPUTS, N_CLASSES)))]
    return make_model(
        [node("Relu", ["x"], ["h"]), *nodes],
        inputs=[value("x", shape)],
        outputs=[value("y", None)],
        initializers=[*weights, *initializers],
        **others,
    )


def images(*nodes, **others):
    kernel = others.pop("kernel", KERNEL)
    return ending(
        *nodes, initializers=[constant("K", kernel)], shape=("N", 3, "height", "width"), **others
    )


def draw_masks(n_passes, *shape, rate=0.25, seed=0):
    kept = np.random.default_rng(seed).random((n_passes, *shape)) >= rate
    return kept.astype(np.float32) / np.float32(1 - rate)


def served(model, masks, feeds, *, choice=None, with_scores=True, sites=()):
    loaded = load(model)
    graph = build_serving_graph(
        loaded,
        choice or logits_choice(),
        top_k=(1,),
        with_scores=with_scores,
        last_layer_masks=masks,
        sites=sites,
    )
    return run_session(graph, feeds)


def passes_of(features, masks, weights, bias):
    """Return the logits of every pass in float64, shape (n, M, K)."""
    dropped = np.float64(features)[:, np.newaxis] * masks
    return dropped @ np.float64(weights) + bias


def assert_agree(outputs, logits, *, rtol=1e-4):
    expected = spread_of(logits)
    seen = expected >= 1e-12
    assert seen.any()
    np.testing.assert_allclose(outputs[VARIANCE][seen], expected[seen], rtol=rtol)
    logs = log_softmax(logits, axis=2)
    np.testing.assert_allclose(outputs[LOGS], logs, rtol=rtol, atol=1e-5)
