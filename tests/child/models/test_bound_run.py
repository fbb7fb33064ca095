"""A bound run gives what `run` gives, on whatever device."""

import numpy as np
import onnxruntime
import pytest
from graph_models import value
from onnx import helper
from runner_models import from_integers, linear, rows, softmax_of_two, weights

from service.child.onnx.session import (
    CPU,
    bound_run,
    preload_cuda,
    providers,
    session_options,
)


@pytest.fixture
def load(each_device):
    """Return what makes a session on each device."""
    if each_device != "cpu":
        preload_cuda()
    options = {"sess_options": session_options(1), "providers": providers(each_device)}
    return lambda model: onnxruntime.InferenceSession(model.SerializeToString(), **options)


def compare(session, outputs, feeds):
    bound = bound_run(session, outputs, feeds, onnxruntime.RunOptions())
    tolerance = 0 if session.get_providers()[0] == CPU else 1e-6
    for got, expected in zip(bound, session.run(outputs, feeds), strict=True):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=tolerance)


def test_rows_of_any_number_and_layout_one_after_the_other(load):
    session = load(linear())
    blocks = [*map(rows, (1, 7, 300, 2, 0)), rows(20)[::2], np.asfortranarray(rows(20))]
    blocks += [np.broadcast_to(rows(1), (5, 6)), rows(20).reshape(2, 10, 6).swapaxes(0, 1)[:, 0]]
    for block in blocks:
        compare(session, ["y"], {"x": block})
    two = softmax_of_two(weights())
    two.graph.output.append(value("z", ("N", 10)))
    for outputs in (["y"], ["z"], ["z", "y"]):
        compare(load(two), outputs, {"right": rows(4, seed=2), "left": rows(4)})
    for dtype in (np.uint8, np.int32, np.int64, np.bool_, np.float16, np.float64):
        element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        x = (np.arange(30).reshape(5, 6) % 2).astype(dtype)
        compare(load(from_integers(weights(), element_type)), ["y"], {"x": x})


def test_answers_do_not_change_with_the_next_run_or_the_rows(load):
    session, first = load(linear()), rows(5)
    answer = bound_run(session, ["y"], {"x": first}, onnxruntime.RunOptions())[0]
    answer_before, first_before = answer.copy(), first.copy()
    bound_run(session, ["y"], {"x": rows(5, seed=9)}, onnxruntime.RunOptions())
    np.testing.assert_array_equal(first, first_before)
    first[:] = 0
    np.testing.assert_array_equal(answer, answer_before)
