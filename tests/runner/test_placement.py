"""On which of several devices a model goes."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from service.runner.devices import Device, Placement

DEVICES = tuple(Device(f"cuda:{n}", "CUDAExecutionProvider", "it works") for n in range(3))
KEYS = st.integers(0, 7)
SIZES = st.integers(0, 5)


def test_the_device_with_the_least_memory_is_taken():
    placement = Placement(lambda: DEVICES[:2])
    assert placement.place("large", 100) == DEVICES[0]
    assert placement.place("small", 10) == DEVICES[1]
    assert placement.place("middle", 50) == DEVICES[1]
    assert placement.place("another", 10) == DEVICES[1]
    assert placement.place("last", 10) == DEVICES[1]
    placement.remove("large")
    assert placement.place("next", 10) == DEVICES[0]


def test_of_equals_the_one_with_fewer_models_then_the_first():
    placement = Placement(lambda: DEVICES)
    assert [placement.place(n, 0) for n in range(4)] == [*DEVICES, DEVICES[0]]
    placement.resize(0, 5)
    placement.resize(1, 5)
    placement.resize(2, 5)
    assert placement.place("on a device with one model", 1) == DEVICES[1]


def test_the_memory_that_a_model_takes_may_change():
    placement = Placement(lambda: DEVICES[:2])
    placement.place("a", 1)
    placement.place("b", 2)
    placement.resize("a", 3)
    assert placement.place("c", 1) == DEVICES[1]


def test_a_model_that_has_a_place_keeps_it():
    placement = Placement(lambda: DEVICES)
    at = [placement.place(key, 1) for key in "abc"]
    assert [placement.place(key, 9) for key in "abc"] == at
    assert placement.place("d", 1) == DEVICES[0]


def test_models_without_a_place_are_no_matter():
    placement = Placement(lambda: DEVICES[:1])
    placement.remove("never here")
    placement.resize("never here", 10)
    placement.place("a", 1)
    placement.remove("a")
    placement.remove("a")
    placement.resize("a", 10)
    assert placement.place("b", 1) == DEVICES[0]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 3))
def test_no_device_is_ahead_by_more_than_its_largest_model(sizes, n_devices):
    placement = Placement(lambda: DEVICES[:n_devices])
    taken = dict.fromkeys(DEVICES[:n_devices], 0)
    for key, size in enumerate(sizes):
        taken[placement.place(key, size)] += size
    assert max(taken.values()) - min(taken.values()) <= max(sizes)


class AgainstBookkeeping(RuleBasedStateMachine):
    """Placement beside plain sums over everything that is loaded."""

    def __init__(self):
        super().__init__()
        self.placement = Placement(lambda: DEVICES)
        self.loaded = {}

    def load(self, device):
        sizes = [size for where, size in self.loaded.values() if where == device]
        return sum(sizes), len(sizes), DEVICES.index(device)

    @rule(key=KEYS, size=SIZES)
    def place(self, key, size):
        expected = self.loaded[key][0] if key in self.loaded else min(DEVICES, key=self.load)
        assert self.placement.place(key, size) == expected
        self.loaded[key] = (expected, size)

    @rule(key=KEYS, size=SIZES)
    def move(self, key, size):
        self.placement.resize(key, size)
        if key in self.loaded:
            self.loaded[key] = (self.loaded[key][0], size)

    @rule(key=KEYS)
    def leave(self, key):
        self.placement.remove(key)
        self.loaded.pop(key, None)

    @invariant()
    def the_next_goes_where_there_is_least(self):
        assert self.placement.place("next", 0) == min(DEVICES, key=self.load)
        self.placement.remove("next")


TestAgainstBookkeeping = AgainstBookkeeping.TestCase


def test_many_threads_fill_all_devices_alike():
    placement = Placement(lambda: DEVICES)
    with ThreadPoolExecutor(8) as threads:
        where = list(threads.map(lambda key: placement.place(key, 1), range(300)))
    assert [where.count(device) for device in DEVICES] == [100, 100, 100]
