"""The covariance's 2-norm in the graph, on probabilities that are fed."""

import numpy as np
import pytest
from graph_models import make_model, run_session, value
from onnx import TensorProto, helper

from service.graph.builder import GraphBuilder
from service.graph.noise.covariance import covariance_norm, n_squarings

TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def in_graph(probabilities, *, precision="float32"):
    _, n_passes, n_classes = probabilities.shape
    kind = TYPES[precision]
    model = make_model([], inputs=[value("x", ("N", n_passes, n_classes), kind)])
    build = GraphBuilder(model.graph, opset=17, precision=precision)
    tensor = covariance_norm(build, "x", n_passes=n_passes, n_classes=n_classes)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(tensor, kind, [None, 1]))
    (values,) = run_session(model, {"x": probabilities.astype(precision)}).values()
    assert values.shape == (len(probabilities), 1)
    return values[:, 0]


def by_singular_values(deviations):
    largest = np.linalg.svd(deviations, compute_uv=False)[:, 0]
    return largest**2 / (deviations.shape[1] - 1)


@pytest.mark.parametrize("n_passes", [2, 3, 9])
@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_any_shape(n_passes, n_classes):
    rng = np.random.default_rng(n_passes)
    probabilities = rng.dirichlet(np.full(n_classes, 0.3), size=(60, n_passes))
    expected = by_singular_values(probabilities - probabilities.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(in_graph(probabilities), expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("n_passes", [2, 30])
@pytest.mark.parametrize("n_classes", [2, 50])
def test_equal_passes_give_exactly_nothing(n_passes, n_classes):
    one = np.random.default_rng(1).dirichlet(np.ones(n_classes), size=(40, 1))
    assert (in_graph(np.repeat(one, n_passes, axis=1)) == 0).all()


@pytest.mark.parametrize("rest", [1e-4, 1e-9, 1e-14])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_digits_are_kept_where_one_class_is_all_but_certain(rest, n_classes):
    """Next to 1 float32 has steps of 6e-8; the classes beside it hold the digits."""
    others = rest * np.random.default_rng(3).random((6, 5, n_classes - 1))
    probabilities = np.concatenate([1 - others.sum(axis=2, keepdims=True), others], axis=2)
    change = others - others.mean(axis=1, keepdims=True)
    exact = np.concatenate([-change.sum(axis=2, keepdims=True), change], axis=2)
    np.testing.assert_allclose(in_graph(probabilities), by_singular_values(exact), rtol=1e-4)


@pytest.mark.parametrize("size", [3, 100])
def test_eigenvalues_that_almost_tie_are_told_apart_well_enough(size):
    """All others at the ratio that misleads squarings most, found by trying them."""
    rng = np.random.default_rng(size)
    power = 2.0 ** n_squarings(size)
    grid = np.exp(-np.linspace(0.01, 10, 2000) / power)
    errors = (size - 2) * grid**power * (1 - grid) / (1 + (size - 2) * grid**power)
    worst = np.ones(size - 1)
    worst[1:] = grid[errors.argmax()]
    # Rows and columns of deviations sum to 0, which takes one dimension.
    left, right = (centred(rng, size) for _ in range(2))
    deviations = left @ np.diag(np.sqrt(worst)) @ right.T
    scale = 0.5 / size / np.abs(deviations).max()
    norms = in_graph(1 / size + scale * deviations[np.newaxis], precision="float64")
    np.testing.assert_allclose(norms, scale**2 / (size - 1), rtol=1e-4)


def centred(rng, size):
    """Return orthonormal columns that sum to 0, shape (size, size - 1)."""
    square = np.column_stack([np.ones(size), rng.normal(size=(size, size - 1))])
    return np.linalg.qr(square)[0][:, 1:]
