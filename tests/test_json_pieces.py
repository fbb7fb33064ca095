"""JSON text in pieces equals that of one call."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.json_pieces import CHUNK_CHARACTERS, json_chunks, json_pieces
from service.storage.fit_results import digest_of
from service.web.page import unbroken

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts) | st.tuples(parts, parts),
)


PLAIN = {"ensure_ascii": False, "separators": (",", ":")}
ENCODERS = [PLAIN, PLAIN | {"sort_keys": True}, {"sort_keys": True, "default": str}]


@given(value=VALUES, depth=st.integers(0, 9), options=st.sampled_from(ENCODERS))
def test_pieces_are_the_whole(value, depth: int, options) -> None:
    found = "".join(json_pieces(value, json.JSONEncoder(**options), depth=depth))
    assert found == json.dumps(value, **options)


BINS = {"tables": [[{"count": i, "lower": i / 7} for i in range(10_000)]] * 10}
PAGE = "<p>7 % wrong</p>" * 200_000


@pytest.mark.parametrize("call", [lambda: digest_of(BINS), lambda: unbroken(PAGE)])
def test_other_threads_run_meanwhile(call) -> None:
    """Processor time of the call between two turns of another thread: no long part of it."""
    clock, ended = time.pthread_getcpuclockid(threading.get_ident()), threading.Event()
    turns = []

    def take_turns() -> None:
        while not ended.wait(0):
            turns.append(time.clock_gettime(clock))

    with ThreadPoolExecutor(1) as thread:
        thread.submit(take_turns)
        began = time.thread_time()
        call()
        turns.append(time.thread_time())
        ended.set()
    gaps = np.diff([began, *(turn for turn in turns if turn > began)])
    assert gaps.max() < gaps.sum() / 3


@pytest.mark.parametrize("n", [0, 1, 50_000])
def test_chunks_are_the_whole(n: int) -> None:
    value = [{"name": "ä", "n": i} for i in range(n)]
    chunks = list(json_chunks(value))
    assert json.loads(b"".join(chunks)) == value
    assert max(map(len, chunks)) < 2 * CHUNK_CHARACTERS
