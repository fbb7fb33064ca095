"""The process that reads sets: what it answers, and what becomes of hostile files."""

from dataclasses import replace
from pathlib import Path

import lying_reader
import numpy as np
import pytest
from dataset_files import write_npz, write_parquet, write_text
from picture_files import class_folders, write_zip
from runner_children import children
from scripted_child import start_program

from service.errors import InvalidDataset, Overloaded, TooLarge
from service.runner.messages.convert import FieldError
from service.runner.messages.dataset import ArrayInfo, Batch, DatasetInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import PRESETS
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
    spawner = Spawner()
    yield SetReader(spawner, sandbox=SandboxRules(), timeout=60, threads=1)
    spawner.close()


@pytest.fixture
def path(tmp_path):
    return write_npz(tmp_path / "set.npz", inputs=INPUTS, labels=LABELS)


def asked(path, **options) -> SetToRead:
    return SetToRead(path, "calibration", **options)


def read_by_liar(how, path, *, timeout=30.0):
    """Read a set to its end through a process that is in the wrong hands."""
    started = []

    def start():
        started.append(start_program(lying_reader.__file__, how))
        return started[-1]

    spawner = Spawner(start)
    found = SetReader(spawner, sandbox=SandboxRules(), timeout=timeout, threads=1)
    try:
        with found.read([asked(path)], LIMITS) as (dataset,):
            return sum(len(batch.labels) for batch in dataset.shards())
    finally:
        assert not started[0].is_alive()
        spawner.close()


def test_a_relative_path_means_the_folder_of_the_parent(reader, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with reader.read([asked(Path(path.name))], LIMITS) as (dataset,):
        assert dataset.info.n_samples == ROWS


def test_both_sets_of_an_upload_are_read_by_one_process(reader, path, tmp_path):
    other = write_npz(tmp_path / "other.npz", inputs=INPUTS[:50], labels=LABELS[:50])
    before = set(children())
    with reader.read([asked(path), SetToRead(other, "evaluation")], LIMITS) as (first, second):
        assert len(set(children()) - before) <= 2  # and the next one in reserve
        assert (first.info.n_samples, second.info.n_samples) == (ROWS, 50)
        np.testing.assert_array_equal(first.labels(), LABELS)
        np.testing.assert_array_equal(first.trial.arrays["inputs"], INPUTS[:256])
        for _ in range(2):  # any number of times over
            batches = list(first.shards())
            assert [batch.start for batch in batches] == [0, 4096, 8192]
            found = np.concatenate([batch.arrays["inputs"] for batch in batches])
            np.testing.assert_array_equal(found, INPUTS)
        assert next(first.shards()).start == 0
        assert [len(batch.labels) for batch in second.shards()] == [50]
        assert [batch.start for batch in first.shards()] == [0, 4096, 8192]


def test_every_format_is_read_where_nothing_can_be_reached(reader, tmp_path):
    """What reads them may be loaded after the process has given up its rights."""
    columns = {"label": LABELS[:40], "a": INPUTS[:40, 0], "b": INPUTS[:40, 1]}
    lines = ["label,a,b", *(f"{k % 4},{k}.5,2" for k in range(40))]
    pictures = Reading(preprocessing=PRESETS["imagenet"])
    files = {
        "parquet": (write_parquet(tmp_path / "a", columns), Reading()),
        "csv": (write_text(tmp_path / "b", "\n".join(lines)), Reading()),
        "zip": (write_zip(tmp_path / "c", class_folders()), pictures),
    }
    for name, (path, reading) in files.items():
        with reader.read([asked(path, reading=reading)], LIMITS) as (dataset,):
            assert dataset.info.format == name
            found = sum(len(batch.labels) for batch in dataset.shards())
            assert found == dataset.info.n_samples


def test_a_rule_is_broken_where_it_was_before(reader, tmp_path):
    inputs = INPUTS.copy()
    inputs[7000, 1] = np.inf
    path = write_npz(tmp_path / "set.npz", inputs=inputs, labels=LABELS)
    with reader.read([asked(path)], LIMITS) as (dataset,):
        rows = dataset.shards()
        assert next(rows).start == 0
        with pytest.raises(InvalidDataset, match="finite") as refused:
            next(rows)
    assert refused.value.violations[0].location == "calibration.inputs[7000]"


@pytest.mark.parametrize("how", ["abort", "segmentation fault"])
def test_a_file_that_crashes_its_reader(path, how):
    with pytest.raises(InvalidDataset) as refused:
        read_by_liar(how, path)
    assert refused.value.violations[0].location == "calibration"
    assert refused.value.violations[0].message == CRASHED


def test_a_reader_that_somebody_kills_is_no_fault_of_the_file(path):
    with pytest.raises(Overloaded, match=STOPPED):
        read_by_liar("killed", path)


@pytest.mark.parametrize("how", ["memory", "arrow memory"])
def test_a_file_that_takes_too_much_memory(path, how):
    with pytest.raises(TooLarge, match="Reading the file needs more than 2 GiB of memory"):
        read_by_liar(how, path)


def test_a_file_that_takes_too_long(path):
    with pytest.raises(InvalidDataset, match=r"Reading the file took longer than 0\.5 s"):
        read_by_liar("sleep", path, timeout=0.5)


def test_the_text_of_a_library_is_not_passed_on(path):
    with pytest.raises(InvalidDataset) as refused:
        read_by_liar("library", path)
    assert "damaged" in refused.value.message
    assert "thrift" not in refused.value.message


def test_nothing_can_be_reached_where_a_file_is_read(path):
    before = path.read_bytes()
    with pytest.raises(InvalidDataset, match=r"reached \[\]"):
        read_by_liar("look around", path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lie", ["another format", "fewer rows"])
def test_a_reader_that_lies_is_treated_as_crashed(path, lie):
    with pytest.raises(InvalidDataset) as refused:
        read_by_liar(lie, path)
    assert refused.value.violations[0].message == CRASHED


N = 1000
INFO = DatasetInfo(
    "inputs", "npz", {"inputs": ArrayInfo("float32", (N, 3))}, N, None, (), labelled=True
)
ALL = Batch(0, {"inputs": INPUTS[:N]}, LABELS[:N], {})
OPENED = OpenedSet(INFO, LABELS[:N], ALL.rows(slice(0, 256)))


def with_info(**changes):
    return replace(OPENED, info=replace(INFO, **changes))


def with_array(name="inputs", *, dtype="float32", shape=(N, 3)):
    return with_info(arrays={name: ArrayInfo(dtype, shape)})


def opened(found):
    """Read what a child reports of a set, as the parent does."""
    received = OpenedSet.of(found.as_tensors(0), 0)
    check_opened(received, SetToRead(Path("set"), "calibration"), LIMITS)
    return received


def test_a_valid_report_of_a_set_is_taken():
    assert opened(OPENED).info == INFO


@pytest.mark.parametrize(
    "found",
    [
        with_info(kind="secrets"),
        with_info(format="pickle"),
        with_info(n_samples=2**40),
        with_info(n_samples=N + 1),
        with_info(n_classes=3),
        with_info(supplied=("../x",)),
        with_info(class_map={"cat": -1}),
        with_info(notes=("x",) * 100),
        with_array(dtype="object"),
        with_array(shape=(N, 2**40)),
        with_array(shape=()),
        with_array("\x1b[31m"),
        replace(OPENED, labels=LABELS[:N] - 1),
        replace(OPENED, labels=LABELS[:N] + 10**6),
        replace(OPENED, labels=LABELS[:N] * 1.0),
        replace(OPENED, labels=None),
        replace(OPENED, trial=ALL.rows(slice(0, 1))),
    ],
)
def test_an_invalid_report_of_a_set_is_refused(found):
    with pytest.raises(ValueError, match=r"."):
        opened(found)


@pytest.mark.parametrize(
    "batch",
    [
        replace(ALL, arrays={"inputs": INPUTS[:N].astype(np.float64)}),
        replace(ALL, arrays={"other": INPUTS[:N]}),
        replace(ALL, labels=LABELS[:N][::-1]),
        replace(ALL, supplied={"own": np.zeros(N)}),
        replace(ALL, start=1),
        ALL.rows(slice(0, 3)),
    ],
)
def test_rows_that_differ_from_the_report_are_refused(batch):
    check_rows(ALL, INFO, LABELS[:N], start=0, n_rows=N)
    with pytest.raises(FieldError):
        check_rows(batch, INFO, LABELS[:N], start=0, n_rows=N)


def test_an_honest_reader_is_believed(path):
    assert read_by_liar("honest", path) == ROWS
