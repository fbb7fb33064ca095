"""A session runs on the device that was asked for, or says that it does not."""

import pytest
from runner_models import linear, session_on

from service.errors import InferenceFailed
from service.runner.pool import RunnerPool


def test_an_unusable_gpu_is_not_replaced_by_the_cpu(capfd):
    with RunnerPool(device="auto") as pool:
        if pool.device().name != "cpu":
            pytest.skip("CUDA works here")
    with pytest.raises(InferenceFailed, match="cuda:0 could not be used for the ONNX model"):
        session_on("cuda:0", linear())
