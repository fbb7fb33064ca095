"""Labels of tables of inputs: indices as they are, names by the caller's word or by their order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from dataset_files import (
    TABLE_FORMATS,
    check_read,
    output_columns,
    refusal,
    write_columns,
    write_parquet,
    write_text,
)

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

NAMES = ["eel", "cat", "dog", "cat", "eel", "eel"] * 5
AGE = np.arange(30.0)
INDICES = [0, 1, 2] * 10
INPUTS = {"inputs": AGE[:, None]}
EEL_FIRST = {"eel": 0, "cat": 1, "dog": 2}
CAT_FIRST = {"cat": 0, "dog": 1, "eel": 2}


def dictionary(names: list[str]) -> pa.Array:
    """Return categories of pandas: one that no row has, too."""
    categories = ["bee", *sorted(set(names))]
    places = pa.array([categories.index(name) for name in names], pa.int8())
    return pa.DictionaryArray.from_arrays(places, pa.array(categories))


STORED = {
    "strings": pa.array,
    "large strings": lambda names: pa.array(names, pa.large_string()),
    "dictionary": dictionary,
}


@pytest.fixture(params=["csv", *STORED])
def write(request, path):
    """Return a function that writes a table of these labels."""
    if request.param == "csv":
        return lambda names: write_columns(path, "csv", {"age": AGE, "label": names})
    stored = STORED[request.param]
    return lambda names: write_columns(path, "parquet", {"age": AGE, "label": stored(names)})


def test_names_of_classes(write):
    path = write(NAMES)
    readings = (Reading(), CAT_FIRST), (Reading(class_map=EEL_FIRST), EEL_FIRST)
    for reading, indices in readings:
        labels = [indices[name] for name in NAMES]
        info = check_read(path, INPUTS, labels, reading=reading)
        assert indices.items() <= info.class_map.items()
        assert info.is_numbered_by_name is (indices is CAT_FIRST)
    error = refusal(path, reading=Reading(class_map={"cat": 0, "dog": 1}))
    assert error.violations[0].location == "calibration.label"
    assert "'eel'" in error.message
    assert type(refusal(path, limits=DatasetLimits(max_classes=2))) is TooLarge
    # Names that are integers are indices.
    check_read(write([str(index) for index in INDICES]), INPUTS, INDICES)


# A map of names says nothing of indices.
MAPS = [({"1": 0, "2": 1, "3": 2}, 0), ({"cat": 0, "dog": 1}, 1)]


@pytest.mark.parametrize(("class_map", "first"), MAPS)
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_integers_are_names_where_the_caller_maps_integers(path, file_format, class_map, first):
    write_columns(path, file_format, {"age": AGE, "label": np.array(INDICES) + 1})
    labels = [index + first for index in INDICES]
    check_read(path, INPUTS, labels, reading=Reading(class_map=class_map))


@pytest.mark.parametrize("dtype", ["f2", "f8", "?", "u1"])
def test_whole_numbers_and_booleans_are_labels_in_parquet(path, dtype):
    labels = (AGE % 2).astype(dtype)
    outputs = np.stack([AGE / 30, 1 - AGE / 30], axis=1)
    write_parquet(path, output_columns(outputs, labels, "prob_"))
    check_read(path, {"probabilities": outputs}, AGE % 2)


@pytest.mark.parametrize("booleans", [("False", "True"), ("false", "true"), ("FALSE", "TRUE")])
def test_booleans_of_csv_are_labels_and_numbers(path, booleans):
    """As pandas and others write them; a class may have such a name."""
    flags = (AGE % 3 == 0).astype(int)
    words = [booleans[flag] for flag in flags]
    write_columns(path, "csv", {"age": AGE, "has_fibre": words, "label": words})
    inputs = {"inputs": np.c_[AGE, flags].astype(float)}
    check_read(path, inputs, flags)
    check_read(path, inputs, 1 - flags, reading=Reading(classes=booleans[::-1]))


def with_class_label(path: Path, names: object, *, column: str = "label") -> Path:
    """Write a table with the schema's metadata as the library `datasets` writes it."""
    label, age = {"names": names, "_type": "ClassLabel"}, {"dtype": "float64", "_type": "Value"}
    features = {"age": age, column: label}
    return write_parquet(path, {"age": AGE, column: INDICES}, features=features)


READINGS = [({}, EEL_FIRST), ({"class_map": EEL_FIRST}, EEL_FIRST)]
READINGS += [({"class_map": CAT_FIRST | {"fox": 3}}, CAT_FIRST)]
READINGS += [({"classes": ["cat", "dog", "eel"]}, CAT_FIRST)]
READINGS += [({"columns": {"label": ["fine_label"]}}, EEL_FIRST)]


@pytest.mark.parametrize(("reading", "indices"), READINGS)
def test_class_labels_keep_their_numbers_unless_the_caller_says_otherwise(path, reading, indices):
    column = reading.get("columns", {"label": ["label"]})["label"][0]
    with_class_label(path, list(EEL_FIRST), column=column)
    names, reading = list(EEL_FIRST), Reading(**reading)
    labels = [indices[names[index]] for index in INDICES]
    info = check_read(path, INPUTS, labels, reading=reading, is_numbered_by_name=False)
    assert indices.items() <= info.class_map.items()
    assert any("renumbered" in note for note in info.notes) == (indices is CAT_FIRST)


BROKEN_NAMES = [
    (["eel", "cat"], None, ".label[2]", "from 0 to 1, got 2"),
    (["eel", "eel", "cat"], None, "", "twice"),
    (["eel", "cat", "dog"], {"cat": 0, "dog": 1}, "", "'eel'"),
]


@pytest.mark.parametrize(("names", "class_map", "location", "named"), BROKEN_NAMES)
def test_class_labels_without_one_name_each_are_refused(path, names, class_map, location, named):
    error = refusal(with_class_label(path, names), reading=Reading(class_map=class_map))
    assert type(error) is InvalidDataset
    assert error.violations[0].location.startswith(f"calibration{location}")
    assert named in error.message


OTHER_METADATA = [
    *(b"", b"\xff", b"[" * 100_000, b'{"info": []}'),
    b'{"info": {"features": {"label": {"names": [1, 2, 3]}}}}',
]


@pytest.mark.parametrize("metadata", OTHER_METADATA, ids=range(len(OTHER_METADATA)))
def test_other_metadata_are_ignored(path, metadata):
    table = pa.table({"age": AGE, "label": INDICES})
    pa_parquet.write_table(table.replace_schema_metadata({b"huggingface": metadata}), path)
    check_read(path, INPUTS, INDICES, class_map=None)


def test_names_of_classes_are_utf_8_and_may_be_those_of_missing_values(path):
    wrong = pa.array([b"\xff\xfe"] * 30).cast(pa.binary()).view(pa.string())
    assert type(refusal(write_parquet(path, {"age": AGE, "label": wrong}))) is InvalidDataset
    write_text(path, "a,label\n1,NA\n,None\n3,NA\n")
    check_read(path, {"inputs": np.array([[1], [np.nan], [3]])}, [0, 1, 0])
