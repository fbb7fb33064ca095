"""Several devices: which are asked for, and what is said of one that cannot be used."""

import socket
import subprocess
import sys

import probed_child
import pytest

from service.errors import InferenceFailed
from service.runner.devices import DeviceFinder, requested_devices
from service.runner.messages.channel import Channel
from service.runner.process import RunnerProcess
from service.runner.spawner import Spawner


@pytest.fixture
def finder(tmp_path):
    """Make the finder of a machine that has these CUDA devices, and the file of what it tries."""
    spawners = []
    log = tmp_path / "tried"
    log.touch()

    def start(*there):
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", probed_child.__file__, str(theirs.fileno())]
            process = subprocess.Popen(
                [*command, str(log), *there],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return RunnerProcess(process, Channel(ours))

    def make(requested, *there):
        spawner = Spawner(lambda: start(*there))
        spawners.append(spawner)
        return DeviceFinder(requested, spawner), lambda: log.read_text().split()

    yield make
    for spawner in spawners:
        spawner.close()


@pytest.mark.parametrize(
    ("requested", "names"),
    [
        ("auto", ("auto",)),
        ("cpu", ("cpu",)),
        ("cuda", ("cuda",)),
        ("cuda:7", ("cuda:7",)),
        ("cuda:1,cuda:0", ("cuda:1", "cuda:0")),
        ("cuda:0,cuda:10,cuda:2", ("cuda:0", "cuda:10", "cuda:2")),
    ],
)
def test_what_may_be_asked_for(requested, names):
    assert requested_devices(requested) == names


@pytest.mark.parametrize(
    "requested",
    ["", "gpu", "cuda:00", "cuda:0 ", "cuda:0,", "cuda:0,cpu", "cuda,cuda:1", "cpu,cpu"],
)
def test_what_may_not(requested):
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda, cuda:N or a list"):
        requested_devices(requested)


def test_a_device_is_named_once():
    with pytest.raises(ValueError, match="once"):
        requested_devices("cuda:1,cuda:0,cuda:1")


def test_all_are_tried_once_and_kept_in_the_order_asked_for(finder):
    found, tried = finder("cuda:1,cuda:0", "cuda:0", "cuda:1")
    for _ in range(2):
        assert [device.name for device in found.devices()] == ["cuda:1", "cuda:0"]
        assert found.device().name == "cuda:1"
    assert {device.provider for device in found.devices()} == {"CUDAExecutionProvider"}
    assert tried() == ["cuda:1", "cuda:0"]


def test_one_that_cannot_be_used_is_named_and_not_tried_again(finder):
    found, tried = finder("cuda:0,cuda:3", "cuda:0", "cuda:1")
    for ask in (found.devices, found.device):
        with pytest.raises(InferenceFailed) as failure:
            ask()
        said = "The device cuda:3 was asked for and is not usable: it is not there."
        assert failure.value.message == said
    assert tried() == ["cuda:0", "cuda:3"]


@pytest.mark.parametrize(
    ("requested", "there", "name"),
    [("auto", ("cuda:0",), "cuda:0"), ("auto", (), "cpu"), ("cuda", ("cuda:0",), "cuda:0")],
)
def test_one_word_means_one_device(finder, requested, there, name):
    found, _ = finder(requested, *there)
    assert [device.name for device in found.devices()] == [name]


def test_the_cpu_is_not_tried(finder):
    found, tried = finder("cpu")
    assert [device.name for device in found.devices()] == ["cpu"]
    assert tried() == []
