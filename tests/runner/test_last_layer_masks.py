"""Last layers whose features are too many for the masks of the passes asked for."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from runner_models import save

from service.errors import TooLarge
from service.runner.messages.passes import PassPlan

N_CHANNELS = 24


@pytest.mark.parametrize(
    ("side", "passes", "said"),
    [(200, 60, "at most 34 passes"), (1000, 2, "to be left out")],
)
def test_more_masks_than_a_graph_holds(pool, tmp_path, side, passes, said):
    nodes = [
        node("Tile", ["x", "times"], ["wide"]),
        node("Conv", ["wide", "K"], ["maps"]),
        node("ReduceMean", ["maps"], ["y"], axes=[2, 3], keepdims=0),
    ]
    kernel = np.random.default_rng(0).normal(size=(3, N_CHANNELS, 1, 1))
    model = make_model(
        nodes,
        inputs=[value("x", ("N", 1, 1, 1))],
        outputs=[value("y", ("N", 3))],
        initializers=[
            constant("times", [1, N_CHANNELS, side, side], np.int64),
            constant("K", kernel),
        ],
    )
    plan = PassPlan("last_layer_dropout_variance", passes=passes, seed=0)
    x = np.random.default_rng(0).normal(size=(3, 1, 1, 1)).astype(np.float32)
    with pytest.raises(TooLarge, match=said) as raised:
        pool.inspect(save(tmp_path, model), top_k=(1,), passes=(plan,), trial={"x": x})
    assert raised.value.violations[0].location == "config.dropout.passes"
