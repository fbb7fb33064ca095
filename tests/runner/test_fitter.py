"""The process that fits: its fit is that of this process, and what it may take has ends."""

import os
import signal
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sample_strategies import simulated_records
from scripted_child import start_scripted

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.plain import to_plain
from service.errors import InferenceFailed, InvalidConfig, InvalidDataset, TooLarge
from service.runner import fitter, process
from service.runner.fitter import KILLED, Fitter
from service.runner.messages.convert import FieldError
from service.runner.messages.fits import RESULT, FitRequest, fit_of
from service.runner.messages.packed import packed
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.spawner import Spawner

pytestmark = pytest.mark.process

OPTIONS = FitOptions(top_k=(1,), measures=("entropy", "learned"), folds=2, bins=5)
SMALL = simulated_records(100, seed=1, top_k=(1,))


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


LIES = ["another sequence", "another kind", "enormous fields", "enormous arrays", "nonsense"]
LIES += ["progress without end", "other progress", "arrays of progress", "no fit"]
LIES += ["an unknown failure", "a failure of many lists"]


@pytest.mark.parametrize("lie", LIES)
def test_a_process_that_lies_about_a_fit_is_stopped(lie) -> None:
    with closing(Spawner(partial(start_scripted, lie))) as spawner:
        own, told = Fitter(spawner, SandboxRules(), 60.0), {"evaluation": None, "n_classes": 10}
        with pytest.raises(RuntimeError, match="invalid response"):
            own.fit(SMALL, OPTIONS, **told, on_progress=lambda *_: None)


def test_a_fit_of_other_options_or_samples_is_refused() -> None:
    fit = fit_calibration(SMALL, options=OPTIONS, n_classes=10)
    request = FitRequest(OPTIONS, 10, SandboxRules())
    assert to_plain(fit_of({RESULT: packed(fit)}, request, 100)) == to_plain(fit)
    event = fit.events[1]
    short = replace(event.learned, uncertainty=event.learned.uncertainty[1:])
    names = replace(event.learned, uncertainty=event.learned.uncertainty.astype("S9"))
    more = [{"served": "x"}, {"measures": {}}, {"learned": None}, {"learned": short}, {"k": 2}]
    events = [{1: replace(event, **change)} for change in (*more, {"learned": names})]
    for lie in (*(replace(fit, events=wrong) for wrong in ({}, *events)), 1):
        with pytest.raises(FieldError):
            fit_of({RESULT: packed(lie)}, request, 100)


DIED = "The process that fitted the calibration died: killed by SIGSEGV."


KILLS = [(signal.SIGKILL, InferenceFailed, KILLED), (signal.SIGSEGV, RuntimeError, DIED)]


@pytest.mark.parametrize(("number", "kind", "words"), KILLS)
def test_a_killed_fit_says_so(fit, started, number, kind, words) -> None:
    with pytest.raises(kind, match=words):
        fit(SMALL, tell=lambda *_: os.kill(started.pids()[0], number))


def test_what_the_records_lack_is_named(fit) -> None:
    with pytest.raises(InvalidConfig, match="calibrate anew"):
        fit(SMALL, replace(OPTIONS, measures=("entropy", "dropout_variance")))
    with pytest.raises(InvalidDataset, match="effective"):
        fit(SMALL.with_design({"group": np.zeros(100, np.int64)}))
