"""Models that draw at random where nobody asked for the mean of several runs."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from runner_models import save

from service.errors import InvalidOnnxModel
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles
from service.runner.messages.passes import PassPlan

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


def drawing(scale, *, seed=0, reads="moved"):
    """Return a model that adds noise to its rows, and makes its scores of them or of the rows."""
    nodes = [
        node("RandomNormalLike", ["x"], ["noise"], scale=scale),
        node("Add", ["x", "noise"], ["moved"]),
        node("MatMul", [reads, "W"], ["y"]),
    ]
    weights = np.random.default_rng(seed).normal(size=(4, 3))
    return make_model(
        nodes,
        inputs=[value("x", ("N", 4))],
        outputs=[value("y", ("N", 3)), value("moved", ("N", 4))],
        initializers=[constant("W", weights)],
    )


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("measure", [None, "last_layer_dropout_variance", "gradient_norm"])
def test_they_are_refused_however_little_they_draw(pool, tmp_path, scale, measure):
    plans = [] if measure is None else [PassPlan(measure, passes=4, seed=0, step=1e-3)]
    with pytest.raises(InvalidOnnxModel, match="ask for ensemble_variance"):
        pool.inspect(
            save(tmp_path, drawing(scale)),
            output={"name": "y"},
            top_k=(1,),
            passes=plans,
            trial={"inputs": X},
        )


def test_a_member_of_an_ensemble_is_named(pool, tmp_path):
    files = [save(tmp_path, drawing(1e-3, seed=i), name=f"{i}.onnx") for i in range(2)]
    together = OnnxModelFiles(files[0].path, members=(OnnxMember(files[1].path),))
    with pytest.raises(InvalidOnnxModel, match="draws at random") as raised:
        pool.inspect(together, output={"name": "y"}, top_k=(1,), trial={"inputs": X})
    assert raised.value.violations[0].location == "model[0]"


def test_what_is_drawn_beside_the_scores_does_no_harm(pool, tmp_path):
    files = save(tmp_path, drawing(1.0, reads="x"))
    options = {"output": {"name": "y"}, "top_k": (1,), "trial": {"inputs": X}}
    assert pool.inspect(files, **options).n_classes == 3
