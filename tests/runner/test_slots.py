"""Who waits for a place gets one as soon as there is one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.errors import Overloaded
from service.runner.loaded_models import Deadline, LoadedModels

# A guard against hanging.
PATIENCE = 60.0


def test_all_who_wait_for_a_model_share_the_place_that_one_of_them_gets() -> None:
    slots = LoadedModels(None, size=1)
    let_go, together = threading.Event(), threading.Barrier(6)

    def first() -> None:
        with slots.hold("first", Deadline(PATIENCE)):
            together.wait(PATIENCE)
            let_go.wait(PATIENCE)

    all_inside = threading.Barrier(5)

    def second() -> None:
        together.wait(PATIENCE)
        with slots.hold("second", Deadline(PATIENCE)):
            all_inside.wait(PATIENCE)  # broken unless all five hold the place at the same time

    with ThreadPoolExecutor(6) as threads:
        holding = threads.submit(first)
        waiting = [threads.submit(second) for _ in range(5)]
        time.sleep(0.2)
        let_go.set()
        for future in [holding, *waiting]:
            future.result(PATIENCE)


def test_who_waits_for_a_key_enters_when_a_held_slot_is_given_it() -> None:
    slots = LoadedModels(None, size=1)

    def wait_for_it() -> None:
        with slots.hold("known", Deadline(PATIENCE)):
            pass

    with ThreadPoolExecutor(1) as threads, slots.hold(object(), Deadline(PATIENCE)) as slot:
        waiting = threads.submit(wait_for_it)
        time.sleep(0.2)
        assert slots._rename(slot, "known")
        waiting.result(PATIENCE)


def test_waiting_ends_when_the_time_is_up() -> None:
    slots = LoadedModels(None, size=1)
    with slots.hold("first", Deadline(PATIENCE)):
        began = time.monotonic()
        with pytest.raises(Overloaded), slots.hold("second", Deadline(0.2)):
            pass
        assert time.monotonic() - began >= 0.2
    with slots.hold("second", Deadline(0.2)):
        pass


def test_who_waits_is_asked_again_and_again_whether_to_go_on() -> None:
    slots = LoadedModels(None, size=1)
    asked = 0

    def stop_at_the_third_time() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise InterruptedError

    with slots.hold("first", Deadline(PATIENCE)):
        endless = Deadline(float("inf"), stop_at_the_third_time)
        with pytest.raises(InterruptedError), slots.hold("second", endless):
            pass
    with slots.hold("second", Deadline(0.2)):
        pass
