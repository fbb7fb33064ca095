import pytest

from service.errors import InferenceFailed
from service.runner import RunnerPool


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


@pytest.mark.gpu
def test_a_model_runs_on_cuda(automatic, tmp_path):
    if automatic.name == "cpu":
        pytest.skip(automatic.reason)
    from runner_models import check_head, linear, rows, save, weights  # noqa: PLC0415

    files, x = save(tmp_path, linear()), rows(300)
    with RunnerPool(device="cuda") as pool:
        loaded = pool.inspect(files, top_k=(1, 5), trial={"x": x})
        assert loaded.provider == "CUDAExecutionProvider"
        outputs = pool.predict(files, loaded.resolved, {"x": x})
    check_head(outputs, x.astype(float) @ weights(), (1, 5))


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_an_error(automatic):
    if automatic.name == "cpu":
        pytest.skip(automatic.reason)
    with pytest.raises(InferenceFailed):
        device("cuda:99")
