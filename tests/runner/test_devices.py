"""Devices and processors: which may be requested, which are tried, and where models go."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_child import start_scripted

from service.errors import InferenceFailed
from service.runner.devices import (
    Device,
    DeviceFinder,
    Placement,
    cgroup_quota,
    usable_cpus,
)
from service.runner.spawner import Spawner

QUOTAS = {"50000 100000\n": 0.5, "": None, "max": None, "a b": None, "1 2 3": None}


def test_the_smallest_quota_of_a_group_and_those_above_it_counts(tmp_path):
    assert 1 <= usable_cpus() <= len(os.sched_getaffinity(0))
    for folder, text in [("a", "150000 100000\n"), ("a/b", "max 100000\n"), ("a/b/c", "4 1\n")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cpu.max").write_text(text)
    assert cgroup_quota(tmp_path, "/a/b/c") == 1.5
    assert cgroup_quota(tmp_path, "/other") is None
    for text, quota in QUOTAS.items():  # of a container, at the root; None: unreadable
        (tmp_path / "cpu.max").write_text(text)
        assert cgroup_quota(tmp_path, "/") == quota


@pytest.fixture
def finder(tmp_path):
    """Make the finder of a machine with these CUDA devices, and return what it has tried."""
    spawners, log = [], tmp_path / "tried"
    log.touch()

    def make(requested, *there):
        spawners.append(Spawner(lambda: start_scripted("probed", log, *there)))
        return DeviceFinder(requested, spawners[-1]), lambda: log.read_text().split()

    yield make
    for spawner in spawners:
        spawner.close()


TRIED = [("auto", ["cuda:0"], ["cuda:0"], ["cuda:0"]), ("auto", [], ["cpu"], ["cuda:0"])]
TRIED += [("cuda", ["cuda:0"], ["cuda:0"], ["cuda:0"]), ("cpu", ["cuda:0"], ["cpu"], [])]
TRIED += [("cuda:1,cuda:0", ["cuda:0", "cuda:1"], ["cuda:1", "cuda:0"], ["cuda:1", "cuda:0"])]


@pytest.mark.process
@pytest.mark.parametrize(("requested", "there", "names", "tries"), TRIED)
def test_devices_are_tried_once_and_kept_in_order(finder, requested, there, names, tries):
    devices, tried = finder(requested, *there)
    for _ in range(2):
        assert [device.name for device in devices.devices()] == names
    provider = "CPUExecutionProvider" if names == ["cpu"] else "CUDAExecutionProvider"
    assert {device.provider for device in devices.devices()} == {provider}
    assert tried() == tries


@pytest.mark.process
def test_an_unusable_device_is_named_and_not_tried_again(finder):
    devices, tried = finder("cuda:0,cuda:3", "cuda:0", "cuda:1")
    for _ in range(2):
        with pytest.raises(InferenceFailed, match=r"cuda:3 .*it is not there"):
            devices.devices()
    assert tried() == ["cuda:0", "cuda:3"]


DEVICES = tuple(Device(f"cuda:{n}", "CUDAExecutionProvider", "it works") for n in range(3))
STEPS = st.tuples(
    st.sampled_from(["place", "resize", "remove"]), st.integers(0, 7), st.integers(0, 5)
)


@given(st.lists(STEPS, max_size=40))
def test_a_model_goes_where_there_is_the_least_memory_then_the_fewest_models_then_the_first(steps):
    placement, loaded = Placement(lambda: DEVICES), {}

    def load(device):
        sizes = [size for where, size in loaded.values() if where == device]
        return sum(sizes), len(sizes), DEVICES.index(device)

    for step, key, size in steps:
        match step:
            case "place":
                expected = loaded[key][0] if key in loaded else min(DEVICES, key=load)
                assert placement.place(key, size) == expected
                loaded[key] = (expected, size)
            case "resize":
                placement.resize(key, size)
                if key in loaded:
                    loaded[key] = (loaded[key][0], size)
            case "remove":
                placement.remove(key)
                loaded.pop(key, None)
        assert placement.place("next", 0) == min(DEVICES, key=load)
        placement.remove("next")
