import pytest

from service.errors import InferenceFailed
from service.runner.pool import RunnerPool


def device(name):
    with RunnerPool(device=name) as pool:
        return pool.device()


@pytest.fixture(scope="module")
def automatic():
    return device("auto")


def test_the_cpu_is_taken_untried():
    assert (device("cpu").name, device("cpu").provider) == ("cpu", "CPUExecutionProvider")


def test_auto_says_what_was_taken_and_why(automatic):
    if automatic.name == "cpu":
        assert automatic.provider == "CPUExecutionProvider"
        assert automatic.reason.startswith("CUDA is not usable: ")
    else:
        assert (automatic.name, automatic.provider) == ("cuda:0", "CUDAExecutionProvider")


def test_cuda_that_does_not_work_is_an_error_when_asked_for(automatic):
    if automatic.name != "cpu":
        pytest.skip("CUDA works here")
    for name in ("cuda", "cuda:1"):
        with pytest.raises(InferenceFailed, match=f"{name} was asked for and is not usable"):
            device(name)
