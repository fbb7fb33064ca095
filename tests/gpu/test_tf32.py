"""Products keep the digits of float32: TF32, which GPUs offer for them, has 10 bits."""

import numpy as np
import onnxruntime
import pytest
from graph_models import constant, make_model, node, value
from runner_models import head_on

from service.child.onnx.session import CUDA, preload_cuda, session_options

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SIZE = 64
LOST_BY_TF32 = 1e-4  # of each number below: half of its last bit there is 2**-12


def numbers(*shape):
    """Return numbers from 1 to 1.02 that lie between those of TF32."""
    odd = 2 * np.random.default_rng(0).integers(0, 40, size=shape) + 1
    return (1 + odd * 2.0**-12).astype(np.float32)


def through_a_product():
    """Return a model that multiplies by one, and what it takes."""
    model = make_model(
        [node("MatMul", ["x", "one"], ["y"])],
        inputs=[value("x", ("N", SIZE))],
        outputs=[value("y", ("N", SIZE))],
        initializers=[constant("one", np.eye(SIZE))],
    )
    return model, numbers(SIZE, SIZE)


def through_a_gemm():
    model = make_model(
        [node("Gemm", ["x", "one", "nothing"], ["y"], transB=1)],
        inputs=[value("x", ("N", SIZE))],
        outputs=[value("y", ("N", SIZE))],
        initializers=[constant("one", np.eye(SIZE)), constant("nothing", np.zeros(SIZE))],
    )
    return model, numbers(SIZE, SIZE)


def through_a_convolution():
    """Return a model of a convolution whose kernel passes on each channel's middle."""
    kernel = np.zeros((SIZE, SIZE, 3, 3))
    kernel[range(SIZE), range(SIZE), 1, 1] = 1
    model = make_model(
        [
            node("Conv", ["x", "kernel"], ["z"], pads=[1] * 4),
            node("Flatten", ["z"], ["y"]),
        ],
        inputs=[value("x", ("N", SIZE, 8, 8))],
        outputs=[value("y", ("N", SIZE * 64))],
        initializers=[constant("kernel", kernel)],
    )
    return model, numbers(16, SIZE, 8, 8)


@pytest.mark.parametrize("through", [through_a_product, through_a_gemm, through_a_convolution])
def test_a_model_computes_in_float32(device, through):
    model, x = through()
    got = head_on(device, model, {"x": x}, kind="logits")["scores"]
    np.testing.assert_allclose(got, x.reshape(len(x), -1), rtol=LOST_BY_TF32 / 10)


def test_tf32_would_show(gpu):
    model, x = through_a_product()
    preload_cuda()
    settings = {"device_id": gpu.removeprefix("cuda:"), "use_tf32": "1"}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), session_options(1), providers=[(CUDA, settings)]
    )
    (got,) = session.run(None, {"x": x})
    lost = np.abs(got / x - 1).max()
    if lost == 0:
        pytest.skip("this GPU has no TF32, or the library does not use it for such a product")
    assert lost > LOST_BY_TF32
