"""The process that fits: its fit is that of this process, and what it may take has ends."""

import os
import signal
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from runner_children import StartedChildren
from sample_strategies import simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.plain import to_plain
from service.errors import InferenceFailed, InvalidConfig, InvalidDataset, TooLarge
from service.runner import fitter, process
from service.runner.fitter import KILLED, Fitter
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.spawner import Spawner

pytestmark = pytest.mark.process

OPTIONS = FitOptions(top_k=(1,), measures=("entropy", "learned"), folds=2, bins=5)
SMALL = simulated_records(100, seed=1, top_k=(1,))


@pytest.fixture
def started():
    return StartedChildren()


@pytest.fixture
def fit(started):
    def fit(records, options=OPTIONS, *, timeout=60.0, evaluation=None, tell=lambda *_: None):
        own = Fitter(spawner, SandboxRules(), timeout)
        return own.fit(records, options, evaluation=evaluation, n_classes=10, on_progress=tell)

    with closing(Spawner(started.start_child)) as spawner:
        yield fit


@pytest.mark.parametrize("n_samples", [100, 1000])
def test_the_fit_of_the_process_is_that_of_this_one(fit, n_samples: int) -> None:
    records, evaluation = (simulated_records(n_samples, seed=s, top_k=(1,)) for s in (2, 3))
    weights = np.random.default_rng(4).uniform(0.5, 2.0, n_samples)
    records = records.with_design({"weight": weights})
    steps = []
    there = fit(records, evaluation=evaluation, tell=lambda *step: steps.append(step))
    here = fit_calibration(records, options=OPTIONS, evaluation=evaluation, n_classes=10)
    assert steps == [(1, 2), (2, 2)]
    # The columns are in the order of the records, not of the fit.
    order = np.argsort(records.tie_key)
    for name, column in here.learned_columns.items():
        column[order] = column.copy()
        np.testing.assert_array_equal(there.learned_columns[name], column)
    assert to_plain(there) == to_plain(here)


def test_a_fit_beyond_its_memory_is_refused_and_the_next_one_runs(fit, monkeypatch) -> None:
    monkeypatch.setattr(fitter, "LEAST_MEMORY_BYTES", 2**20)
    monkeypatch.setattr(fitter, "MEMORY_OF_RECORDS", 0)
    with pytest.raises(TooLarge, match="more memory") as refused:
        fit(simulated_records(20_000, seed=1, top_k=(1,)))
    assert refused.value.violations[0].location == "config"
    monkeypatch.undo()
    fit(SMALL)


def test_a_fit_beyond_its_time_is_ended(fit, monkeypatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.0)
    with pytest.raises(TooLarge, match=r"longer than 0\.01 s: use fewer"):
        fit(SMALL, timeout=0.01)


def test_whoever_cancels_leaves_no_process(fit, started) -> None:
    fitting = []

    def cancel(_done: int, _total: int) -> None:
        fitting.append(started.pids()[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(SMALL, tell=cancel)
    assert fitting[0] not in started.pids()


DIED = "The process that fitted the calibration died: killed by SIGSEGV."


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [(signal.SIGKILL, InferenceFailed, KILLED), (signal.SIGSEGV, RuntimeError, DIED)],
)
def test_a_killed_fit_says_so(fit, started, number, kind, words) -> None:
    with pytest.raises(kind, match=words):
        fit(SMALL, tell=lambda *_: os.kill(started.pids()[0], number))


def test_what_the_records_lack_is_named(fit) -> None:
    with pytest.raises(InvalidConfig, match="calibrate anew"):
        fit(SMALL, replace(OPTIONS, measures=("entropy", "dropout_variance")))
    with pytest.raises(InvalidDataset, match="effective"):
        fit(SMALL.with_design({"group": np.zeros(100, np.int64)}))
