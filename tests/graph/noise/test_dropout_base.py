"""Without noise, a model whose Dropout is exposed is the model itself, to the last bit."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import constant, make_model, node, run_session, value
from graph_noise import dropout, load, logits_choice, quiet, run_sites

from service.graph.noise.dropout import expose_dropout

PASSES = Path(__file__).parents[2] / "data" / "passes"


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_wide_layers_keep_every_bit(opset):
    """ONNX Runtime joins MatMul and Add where it knows the rank, and sums in another order then."""
    rng = np.random.default_rng(4)
    model = make_model(
        [
            node("Relu", ["x"], ["h"]),
            *dropout("h", "d", 0.5, opset=opset),
            node("MatMul", ["d", "w"], ["z"]),
            node("Add", ["z", "b"], ["y"]),
        ],
        inputs=[value("x", ("N", 900))],
        outputs=[value("y", ("N", 300))],
        initializers=[
            constant("w", rng.normal(size=(900, 300))),
            constant("b", rng.normal(size=300)),
        ],
        opset=opset,
    )
    rows = rng.normal(size=(65, 900)).astype(np.float32)
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    got = run_sites(loaded, sites, {"x": rows} | quiet(sites), choice=logits_choice(300))
    np.testing.assert_array_equal(got["scores"], run_session(model, {"x": rows})["y"])


@pytest.mark.parametrize(
    "name",
    [
        "hidden_dropout_cnn",
        "hidden_dropout_cnn_dynamo",
        "last_layer_dropout_cnn",
        "squeezenet_like",
    ],
)
def test_torch_exports_keep_every_bit(name):
    with np.load(PASSES / "digits_passes.npz") as arrays:
        images = arrays["evaluation_inputs"][:64]
    data = (PASSES / f"{name}.onnx").read_bytes()
    loaded = load_bytes(data)
    sites = expose_dropout(loaded, "logits", rate=None)
    choice = logits_choice(10, "logits")
    got = run_sites(loaded, sites, {"inputs": images} | quiet(sites), choice=choice)
    np.testing.assert_array_equal(got["scores"], run_session(data, {"inputs": images})["logits"])


def test_a_sequence_of_any_length_keeps_every_bit():
    with np.load(PASSES / "sequences.npz") as arrays:
        tokens = arrays["evaluation_inputs"][:16]
    data = (PASSES / "sequence_dropout.onnx").read_bytes()
    for length in (12, 5):
        feeds = {"inputs": tokens[:, :length]}
        loaded = load_bytes(data)
        sites = expose_dropout(loaded, "logits", rate=None)
        got = run_sites(loaded, sites, feeds | quiet(sites), choice=logits_choice(3, "logits"))
        np.testing.assert_array_equal(got["scores"], run_session(data, feeds)["logits"])
        assert got["noise_shape_0"].tolist() == [16, length, 16]
        assert [site.rate for site in sites] == [0.1, 0.2]


def load_bytes(data):
    return load(type(make_model([])).FromString(data))
