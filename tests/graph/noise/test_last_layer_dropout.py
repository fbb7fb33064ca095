"""Dropout before the last layer inside the graph, against numpy on the same masks."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import (
    BIASES,
    LOGS,
    N_CLASSES,
    N_HIDDEN,
    ROWS,
    VARIANCE,
    WEIGHTS,
    assert_agree,
    constant,
    draw_masks,
    dropout,
    last_hidden,
    load,
    logits_choice,
    make_model,
    network,
    node,
    opsets,
    passes_of,
    run_session,
    served,
    spread_of,
    value,
)
from onnx import ModelProto, TensorProto, helper, numpy_helper

from service.errors import InvalidConfig
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.serving import build_serving_graph

PASSES = Path(__file__).parents[2] / "data" / "passes"


@pytest.mark.parametrize("scale", [1.0, 6.0])
@pytest.mark.parametrize("n_passes", [2, 100])
@pytest.mark.parametrize("n_classes", [2, 1000])
def test_numpy_agrees_on_the_same_masks(n_classes, n_passes, scale):
    rng = np.random.default_rng(n_classes + n_passes)
    weights = (scale * rng.normal(size=(32, n_classes)) / np.sqrt(32)).astype(np.float32)
    bias = rng.normal(size=n_classes).astype(np.float32)
    model = make_model(
        [node("Gemm", ["x", "w", "b"], ["y"])],
        inputs=[value("x", ("N", 32))],
        initializers=[constant("w", weights), constant("b", bias)],
    )
    rows = 3 if n_classes == 1000 else 12
    features = np.abs(rng.normal(size=(rows, 32))).astype(np.float32)
    masks = draw_masks(n_passes, 32, rate=0.1)
    outputs = served(model, masks, {"x": features}, choice=logits_choice(n_classes))
    assert_agree(outputs, passes_of(features, masks, weights, bias))


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_opset_and_precision(opset, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    last = dropout("h1", "d1", 0.25, opset=opset)
    model = network((), last, opset=opset, dtype=dtype, element_type=kind)
    masks = draw_masks(20, N_HIDDEN)
    rows = ROWS.astype(dtype)
    choice = logits_choice(precision=np.dtype(dtype).name)
    outputs = served(model, masks, {"x": rows}, choice=choice)
    assert outputs[VARIANCE].dtype == np.float32
    assert outputs[LOGS].dtype == dtype
    assert outputs[LOGS].shape == (len(rows), 20, N_CLASSES)
    assert_agree(outputs, passes_of(last_hidden(rows), masks, WEIGHTS[2], BIASES[2]))


def test_float16_comes_out_as_its_digits_allow():
    model = network(dtype=np.float16, element_type=TensorProto.FLOAT16)
    masks = draw_masks(10, N_HIDDEN)
    outputs = served(model, masks, {"x": ROWS.astype(np.float16)})
    expected = spread_of(passes_of(last_hidden(ROWS), masks, WEIGHTS[2], BIASES[2]))
    np.testing.assert_allclose(outputs[VARIANCE], expected, rtol=0.1, atol=1e-5)


def test_all_else_stays_as_it_was():
    model = network()
    plain = run_session(
        build_serving_graph(load(model), logits_choice(), top_k=(1,), with_scores=True), {"x": ROWS}
    )
    outputs = served(model, draw_masks(5, N_HIDDEN), {"x": ROWS})
    assert list(outputs) == [*plain, VARIANCE, LOGS]
    for name, values in plain.items():
        np.testing.assert_array_equal(outputs[name], values)


def test_log_probabilities_come_with_the_scores_alone():
    outputs = served(network(), draw_masks(5, N_HIDDEN), {"x": ROWS}, with_scores=False)
    assert VARIANCE in outputs
    assert LOGS not in outputs


def test_features_that_are_not_numbers_are_seen():
    rows = ROWS.copy()
    rows[2] = np.nan
    outputs = served(network(), draw_masks(5, N_HIDDEN), {"x": rows})
    expected = np.arange(len(rows)) == 2
    np.testing.assert_array_equal(np.isnan(outputs[VARIANCE]), expected)
    np.testing.assert_array_equal(np.isnan(outputs[LOGS]).all(axis=(1, 2)), expected)


@pytest.mark.parametrize(
    "name",
    ["last_layer_dropout_cnn", "small_cnn", "hidden_dropout_cnn_dynamo", "squeezenet_like"],
)
def test_torch_exports(name):
    """The whole tail is run again in numpy from the features that the graph shows."""
    with np.load(PASSES / "digits_passes.npz") as arrays:
        feeds = {"inputs": arrays["evaluation_inputs"][:40]}
    model = ModelProto.FromString((PASSES / f"{name}.onnx").read_bytes())
    choice = logits_choice(10, "logits")
    shown = run_session(expose_features(load(model), choice), feeds)
    assert list(shown) == ["howsure_features"]
    features = shown["howsure_features"].astype(np.float64)
    masks = draw_masks(30, *features.shape[1:])
    last = [step for step in model.graph.node if step.op_type in ("Gemm", "Conv")][-1]
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    weight, bias = (np.float64(numpy_helper.to_array(tensors[name])) for name in last.input[1:])
    dropped = features[:, np.newaxis] * masks
    if weight.ndim == 4:  # 1x1 convolution, rectifier, mean over pixels
        maps = np.einsum("nmchw,kc->nmkhw", dropped, weight[:, :, 0, 0])
        logits = np.maximum(maps + bias[:, np.newaxis, np.newaxis], 0).mean(axis=(3, 4))
    else:
        logits = dropped @ weight.T + bias
    assert_agree(served(model, masks, feeds, choice=choice), logits)


def test_a_model_without_a_last_layer_is_refused_by_both_steps():
    model = make_model([node("Softmax", ["x"], ["y"])])
    with pytest.raises(InvalidConfig, match="last_layer_dropout_variance"):
        expose_features(load(model), logits_choice())
    with pytest.raises(InvalidConfig, match="last_layer_dropout_variance"):
        served(model, draw_masks(4, 3), {"x": ROWS})
