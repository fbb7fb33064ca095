"""The process that reads sets: what it answers, and what becomes of hostile files."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dataset_files import write_npz, write_parquet, write_text
from forked_children import SERVER
from picture_files import class_folders, write_zip
from runner_children import children

from howsure.preprocessing import PRESETS
from service.errors import InvalidDataset, Overloaded, TooLarge
from service.runner.messages.convert import FieldError
from service.runner.messages.dataset import ArrayInfo, Batch, DatasetInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.messages.set_checks import check_opened, check_rows
from service.runner.messages.set_messages import OpenedSet, SetToRead
from service.runner.set_reader import CRASHED, STOPPED, SetReader
from service.runner.spawner import Spawner

ROWS = 10_000
INPUTS = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
LABELS = np.arange(ROWS) % 4
LIMITS = DatasetLimits()


@pytest.fixture(scope="module")
def reader():
    with closing(Spawner(SERVER.start_child)) as spawner:
        yield SetReader(spawner, sandbox=SandboxRules(), timeout=60, threads=1)


@pytest.fixture
def path(tmp_path):
    return write_npz(tmp_path / "set.npz", inputs=INPUTS, labels=LABELS)


def to_read(path, **options) -> SetToRead:
    return SetToRead(path, "calibration", **options)


def read_by_liar(how, path, *, timeout=30.0):
    """Read a set to its end through a process that is in the wrong hands."""
    started = []

    def start():
        started.append(SERVER.start_program("lying_reader", how))
        return started[-1]

    spawner = Spawner(start)
    liar = SetReader(spawner, sandbox=SandboxRules(), timeout=timeout, threads=1)
    try:
        with liar.read([to_read(path)], LIMITS) as (dataset,):
            return sum(len(batch.labels) for batch in dataset.shards())
    finally:
        assert not started[0].is_alive()
        spawner.close()


@pytest.mark.process
def test_both_sets_of_an_upload_are_read_by_one_process(reader, path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)  # a relative path means the folder of the parent
    other = write_npz(tmp_path / "other.npz", inputs=INPUTS[:50], labels=LABELS[:50])
    sets = [to_read(Path(path.name)), SetToRead(other, "evaluation")]
    before = set(children())
    with reader.read(sets, LIMITS) as (first, second):
        assert len(set(children()) - before) <= 2  # and the next one in reserve
        assert (first.info.n_samples, second.info.n_samples) == (ROWS, 50)
        np.testing.assert_array_equal(first.labels(), LABELS)
        np.testing.assert_array_equal(first.trial.arrays["inputs"], INPUTS[:256])
        for _ in range(2):  # any number of times over, also after a part of the other
            batches = list(first.shards())
            assert [batch.start for batch in batches] == [0, 4096, 8192]
            inputs = np.concatenate([batch.arrays["inputs"] for batch in batches])
            np.testing.assert_array_equal(inputs, INPUTS)
            assert next(first.shards()).start == 0
            assert [len(batch.labels) for batch in second.shards()] == [50]


@pytest.mark.process
def test_every_format_is_read_where_nothing_can_be_reached(tmp_path):
    """What reads them may be loaded after a real process has given up its rights."""
    columns = {"label": LABELS[:40], "a": INPUTS[:40, 0], "b": INPUTS[:40, 1]}
    lines = ["label,a,b", *(f"{k % 4},{k}.5,2" for k in range(40))]
    pictures = Reading(preprocessing=PRESETS["imagenet"])
    sets = [
        to_read(write_parquet(tmp_path / "a", columns)),
        to_read(write_text(tmp_path / "b", "\n".join(lines))),
        to_read(write_zip(tmp_path / "c", class_folders()), reading=pictures),
    ]
    with closing(Spawner()) as spawner:
        reader = SetReader(spawner, sandbox=SandboxRules(), timeout=60, threads=1)
        with reader.read(sets, LIMITS) as datasets:
            assert [dataset.info.format for dataset in datasets] == ["parquet", "csv", "zip"]
            for dataset in datasets:
                n_read = sum(len(batch.labels) for batch in dataset.shards())
                assert n_read == dataset.info.n_samples


READER_FAILURES = [("abort", InvalidDataset, CRASHED)]
READER_FAILURES += [("segmentation fault", InvalidDataset, CRASHED)]
READER_FAILURES += [("another format", InvalidDataset, CRASHED)]
READER_FAILURES += [("fewer rows", InvalidDataset, CRASHED), ("killed", Overloaded, STOPPED)]
READER_FAILURES += [("memory", TooLarge, "2 GiB"), ("arrow memory", TooLarge, "2 GiB")]
READER_FAILURES += [("sleep", InvalidDataset, "0.5 s"), ("library", InvalidDataset, "damaged")]
READER_FAILURES += [("look around", InvalidDataset, "reached []")]


@pytest.mark.process
@pytest.mark.parametrize(("how", "error", "words"), READER_FAILURES)
def test_a_file_or_a_reader_that_fails(path, how, error, words):
    before = path.read_bytes()
    with pytest.raises(error, match=re.escape(words)) as refused:
        read_by_liar(how, path, timeout=0.5 if how == "sleep" else 30.0)
    assert "thrift" not in refused.value.message  # the text of a library is not passed on
    if error is InvalidDataset:
        assert refused.value.violations[0].location == "calibration"
    assert path.read_bytes() == before


N = 1000
ARRAYS = {"inputs": ArrayInfo("float32", (N, 3))}
INFO = DatasetInfo("inputs", "npz", ARRAYS, N, None, (), labelled=True)
ALL = Batch(0, {"inputs": INPUTS[:N]}, LABELS[:N], {})
OPENED = OpenedSet(INFO, LABELS[:N], ALL.rows(slice(0, 256)))


WRONG_INFO = [{"kind": "secrets"}, {"format": "pickle"}, {"n_samples": 2**40}, {"n_classes": 3}]
WRONG_INFO += [{"n_samples": N + 1}, {"supplied": ("../x",)}, {"class_map": {"cat": -1}}]
WRONG_INFO += [{"class_map": {"cat": 10**6}}, {"notes": ("\x1b",)}]
WRONG_INFO += [{"notes": ("x",) * 100}, {"arrays": {"\x1b[31m": ArrayInfo("float32", (N, 3))}}]
WRONG_INFO += [{"texts": {"\x1b[31m": ("a",)}}, {"texts": {"a": ("b\0",)}}]
WRONG_INFO += [{"texts": {"a": tuple("bcdefg")}}, {"possible_features": ("a",)}]
WRONG_ARRAYS = [("object", (N, 3)), ("float32", (N, 2**40)), ("float32", ())]
WRONG_INFO += [{"arrays": {"inputs": ArrayInfo(*array)}} for array in WRONG_ARRAYS]
WRONG = [{"info": replace(INFO, **changes)} for changes in WRONG_INFO]
WRONG += [{"labels": LABELS[:N] - 1}, {"labels": LABELS[:N] + 10**6}, {"labels": LABELS[:N] * 1.0}]
WRONG += [{"labels": None}, {"trial": ALL.rows(slice(0, 1))}]


def opened(report):
    """Read what a child reports of a set, as the parent does."""
    received = OpenedSet.of(report.as_tensors(0), 0)
    check_opened(received, to_read(Path("set")), LIMITS)
    return received


@pytest.mark.parametrize("changes", WRONG)
def test_an_invalid_report_of_a_set_is_refused(changes):
    assert opened(OPENED).info == INFO
    with pytest.raises(ValueError, match=r"."):
        opened(replace(OPENED, **changes))


OTHER_ROWS = [{"arrays": {"inputs": INPUTS[:N].astype(np.float64)}}, {"start": 1}]
OTHER_ROWS += [{"arrays": {"other": INPUTS[:N]}}, {"labels": LABELS[:N][::-1]}]
OTHER_ROWS += [{"supplied": {"own": np.zeros(N)}}, vars(ALL.rows(slice(0, 3)))]


@pytest.mark.parametrize("changes", OTHER_ROWS)
def test_rows_that_differ_from_the_report_are_refused(changes):
    check_rows(ALL, INFO, LABELS[:N], start=0, n_rows=N)
    with pytest.raises(FieldError):
        check_rows(replace(ALL, **changes), INFO, LABELS[:N], start=0, n_rows=N)


@pytest.mark.process
def test_each_column_of_a_wide_csv_takes_little_memory(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_sandbox", SandboxRules(memory_bytes=550 * 2**20))
    names, numbers = (",".join(f"{kind}{k}" for k in range(30_000)) for kind in ("logit_", "1."))
    wide = write_text(tmp_path / "wide.csv", f"label,{names}\n1,{numbers}\n0,{numbers}\n")
    with reader.read([to_read(wide)], LIMITS) as (dataset,):
        assert [batch.arrays["logits"].shape for batch in dataset.shards()] == [(2, 30_000)]


@pytest.mark.process
def test_an_honest_reader_is_believed(path):
    assert read_by_liar("honest", path) == ROWS
