"""Labels of tables of inputs: indices as they are, names by the caller's word or by their order."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import info_of, read_all, refusal, write_parquet, write_text

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

NAMES = ["eel", "cat", "dog", "cat", "eel", "eel"] * 5
AGE = np.arange(30)
PLACES = [("csv", None), ("parquet", "strings"), ("parquet", "large"), ("parquet", "dictionary")]


def written(path: Path, file_format: str, stored: str | None, names: list[str]) -> Path:
    if file_format == "csv":
        rows = (f"{age},{name}\n" for age, name in zip(AGE, names, strict=True))
        return write_text(path, "age,label\n" + "".join(rows))
    arrow = {
        "strings": pa.array(names),
        "large": pa.array(names, pa.large_string()),
        # Categories of pandas: one that no row has, too.
        "dictionary": pa.DictionaryArray.from_arrays(
            pa.array([["bee", *sorted(set(names))].index(name) for name in names], pa.int8()),
            pa.array(["bee", *sorted(set(names))]),
        ),
    }
    return write_parquet(path, {"age": AGE, "label": arrow[stored]}, row_group_size=11)


@pytest.mark.parametrize(("file_format", "stored"), PLACES)
@pytest.mark.parametrize(
    ("reading", "indices", "inferred"),
    [
        (Reading(), {"cat": 0, "dog": 1, "eel": 2}, True),
        (Reading(class_map={"eel": 0, "dog": 7, "cat": 2, "fox": 3}), None, False),
        (Reading(classes=["eel", "fox", "dog", "cat"]), {"eel": 0, "dog": 2, "cat": 3}, False),
    ],
    ids=["by their order", "class_map", "classes"],
)
def test_names_of_classes(path, file_format, stored, reading, indices, *, inferred):
    indices = indices or reading.class_map
    path = written(path, file_format, stored, NAMES)
    found, labels = read_all(path, reading=reading)
    assert labels.tolist() == [indices[name] for name in NAMES]
    np.testing.assert_array_equal(found["inputs"], AGE[:, None])
    info = info_of(path, reading=reading)
    assert {name: info.class_map[name] for name in set(NAMES)} == {
        name: indices[name] for name in set(NAMES)
    }
    assert info.is_numbered_by_name is inferred


@pytest.mark.parametrize("dtype", ["f2", "f8", "?", "u1"])
@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_whole_numbers_and_booleans_are_labels_in_parquet(path, kind, dtype):
    labels = AGE % 2
    rows = {"age": AGE} if kind == "inputs" else {"prob_0": AGE / 30, "prob_1": 1 - AGE / 30}
    path = write_parquet(path, rows | {"label": labels.astype(dtype)}, row_group_size=11)
    _, found = read_all(path)
    assert found.dtype == np.int64
    assert found.tolist() == labels.tolist()


@pytest.mark.parametrize("written_as", [("False", "True"), ("false", "true"), ("FALSE", "TRUE")])
def test_booleans_are_labels_in_csv(path, written_as):
    """As pandas and others write them; a class may have such a name."""
    labels = AGE % 2
    rows = [f"1,{written_as[label]}" for label in labels]
    path = write_text(path, "\n".join(["age,label", *rows]))
    assert read_all(path)[1].tolist() == labels.tolist()
    reading = Reading(classes=(written_as[1], written_as[0]))
    assert read_all(path, reading=reading)[1].tolist() == (1 - labels).tolist()


@pytest.mark.parametrize("written_as", [("False", "True"), ("false", "true"), ("FALSE", "TRUE")])
def test_booleans_are_numbers_in_csv(path, written_as):
    """Of a feature, and of the labels of outputs."""
    flags = [written_as[int(age % 3 == 0)] for age in AGE]
    rows = [f"{age},{flag},{age % 2}" for age, flag in zip(AGE, flags, strict=True)]
    path = write_text(path, "\n".join(["age,has_fibre,label", *rows]))
    np.testing.assert_array_equal(read_all(path)[0]["inputs"], np.c_[AGE, AGE % 3 == 0])
    rows = [f"{age / 30},{flag}" for age, flag in zip(AGE, flags, strict=True)]
    path = write_text(path, "\n".join(["prob,label", *rows]))
    assert read_all(path)[1].tolist() == (AGE % 3 == 0).tolist()
    path = write_text(path, "age,has_fibre,label\n1,True,0\n2,yes,1\n")
    error = refusal(path)
    assert error.violations[0].location == "calibration.has_fibre[1]"
    assert "got 'yes'" in error.message


@pytest.mark.parametrize(("file_format", "stored"), PLACES)
def test_a_name_that_class_map_does_not_have_is_refused(path, file_format, stored):
    path = written(path, file_format, stored, NAMES)
    error = refusal(path, reading=Reading(class_map={"cat": 0, "dog": 1}))
    assert error.violations[0].location == "calibration.label"
    assert "'eel'" in error.message
    error = refusal(path, limits=DatasetLimits(max_classes=2))
    assert type(error) is TooLarge


@pytest.mark.parametrize(("file_format", "stored"), PLACES)
def test_names_that_are_integers_are_indices(path, file_format, stored):
    names = [str(k % 4) for k in range(30)]
    path = written(path, file_format, stored, names)
    assert read_all(path)[1].tolist() == [k % 4 for k in range(30)]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_integers_are_names_where_the_caller_maps_integers(path, file_format):
    counted = (np.arange(30) % 3 + 1).tolist()
    if file_format == "csv":
        written(path, "csv", None, list(map(str, counted)))
    else:
        write_parquet(path, {"age": AGE, "label": counted})
    _, labels = read_all(path, reading=Reading(class_map={"1": 0, "2": 1, "3": 2}))
    assert labels.tolist() == [label - 1 for label in counted]
    # A map of names says nothing of indices.
    _, labels = read_all(path, reading=Reading(class_map={"cat": 0, "dog": 1}))
    assert labels.tolist() == counted


LABELS = (np.arange(30) % 3).tolist()


def with_class_label(path: Path, names: object, *, column: str = "label") -> Path:
    """Write a table with the schema's metadata as the library `datasets` writes it."""
    features = {
        "age": {"dtype": "int64", "_type": "Value"},
        column: {"names": names, "_type": "ClassLabel"},
    }
    table = pa.table({"age": AGE, column: LABELS})
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pa_parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_class_labels_keep_their_numbers_and_names(path):
    with_class_label(path, ["eel", "cat", "dog"])
    for reading in (Reading(), Reading(class_map={"eel": 0, "cat": 1, "dog": 2})):
        assert read_all(path, reading=reading)[1].tolist() == LABELS
        info = info_of(path, reading=reading)
        assert info.class_map == {"eel": 0, "cat": 1, "dog": 2}
        assert not info.is_numbered_by_name
        assert not any("renumbered" in note for note in info.notes)


@pytest.mark.parametrize(
    "reading",
    [
        Reading(class_map={"cat": 0, "dog": 1, "eel": 2, "fox": 3}),
        Reading(classes=["cat", "dog", "eel"]),
    ],
    ids=["class_map", "classes"],
)
def test_class_labels_are_renumbered_where_the_caller_says_otherwise(path, reading):
    path = with_class_label(path, ["eel", "cat", "dog"])
    assert read_all(path, reading=reading)[1].tolist() == [[2, 0, 1][label] for label in LABELS]
    info = info_of(path, reading=reading)
    assert {info.class_map[name] for name in ("cat", "dog", "eel")} == {0, 1, 2}
    assert "Labels were renumbered" in info.notes[-1]


def test_a_class_label_without_a_name_is_refused(path):
    error = refusal(with_class_label(path, ["eel", "cat"]))
    assert error.violations[0].location == "calibration.label[2]"
    assert "from 0 to 1, got 2" in error.message
    error = refusal(with_class_label(path, ["eel", "eel", "cat"]))
    assert type(error) is InvalidDataset
    error = refusal(
        with_class_label(path, ["eel", "cat", "dog"]),
        reading=Reading(class_map={"cat": 0, "dog": 1}),
    )
    assert "'eel'" in error.message


def test_class_labels_of_a_column_of_another_name(path):
    path = with_class_label(path, ["eel", "cat", "dog"], column="fine_label")
    reading = Reading(columns={"label": ["fine_label"]})
    assert read_all(path, reading=reading)[1].tolist() == LABELS
    assert info_of(path, reading=reading).class_map == {"eel": 0, "cat": 1, "dog": 2}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"info": []}',
        b'{"info": {"features": {"label": {"names": [1, 2, 3]}}}}',
    ],
)
def test_other_metadata_are_ignored(path, metadata):
    table = pa.table({"age": AGE, "label": LABELS})
    pa_parquet.write_table(table.replace_schema_metadata({b"huggingface": metadata}), path)
    assert read_all(path)[1].tolist() == LABELS
    assert info_of(path).class_map is None


def test_names_of_classes_are_utf_8(path):
    wrong = pa.array([b"\xff\xfe"] * 30).cast(pa.binary()).view(pa.string())
    path = write_parquet(path, {"age": AGE, "label": wrong})
    assert type(refusal(path)) is InvalidDataset
