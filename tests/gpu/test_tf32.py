"""Products keep the digits of float32: TF32, which GPUs offer for them, has 10 bits."""

import numpy as np
import onnxruntime
import pytest
from graph_models import constant, make_model, steps, value
from runner_models import session_on

from service.child.onnx.session import CUDA, preload_cuda, session_options

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SIZE = 64
LOST_BY_TF32 = 1e-4  # of each number below: half of its last bit there is 2**-12


def numbers(*shape):
    """Return numbers from 1 to 1.02 that lie between those of TF32."""
    odd = 2 * np.random.default_rng(0).integers(0, 40, size=shape) + 1
    return (1 + odd * 2.0**-12).astype(np.float32)


def convolution_kernel():
    """Return a kernel that passes on each channel's middle."""
    kernel = np.zeros((SIZE, SIZE, 3, 3))
    kernel[range(SIZE), range(SIZE), 1, 1] = 1
    return kernel


ONE, NOTHING = constant("one", np.eye(SIZE)), constant("nothing", np.zeros(SIZE))
# Nodes that multiply by one, their constants, and the shape of what they take.
THROUGH = {
    "product": ("y = MatMul(x, one)", [ONE], (SIZE, SIZE)),
    "gemm": ("y = Gemm<transB = 1>(x, one, nothing)", [ONE, NOTHING], (SIZE, SIZE)),
    "convolution": (
        "z = Conv<pads = [1, 1, 1, 1]>(x, one); y = Flatten(z)",
        [constant("one", convolution_kernel())],
        (16, SIZE, 8, 8),
    ),
}


def through(name):
    """Return a model that multiplies by one, and what it takes."""
    text, initializers, (n_rows, *shape) = THROUGH[name]
    model = make_model(
        steps(text),
        inputs=[value("x", ("N", *shape))],
        outputs=[value("y", ("N", int(np.prod(shape))))],
        initializers=initializers,
    )
    return model, numbers(n_rows, *shape)


@pytest.mark.parametrize("name", THROUGH)
def test_a_model_computes_in_float32(device, name):
    model, x = through(name)
    got = session_on(device, model).run(["y"], {"x": x}, place="inputs")["y"]
    np.testing.assert_allclose(got, x.reshape(len(x), -1), rtol=LOST_BY_TF32 / 10)


def test_tf32_would_show(gpu):
    model, x = through("product")
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
