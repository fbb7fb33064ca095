"""Pictures in archives: each layout brings every picture with its own label, in order."""

import json
from pathlib import Path

import numpy as np
import pytest
from picture_files import (
    AS_THEY_ARE,
    CLASSES,
    WRITERS,
    class_folders,
    jpeg,
    opened,
    plain_png,
    shades_and_labels,
)

from service.child.pictures.decode import read_picture
from service.errors import InvalidDataset
from service.runner.messages.preprocessing import PRESETS, Preprocessing
from service.runner.messages.reading import Reading

ORDER = {"cat": 0, "dog": 1, "emu": 2}
WITH = Preprocessing()


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    return lambda members: WRITERS[request.param](tmp_path / "set", members)


def check(path: Path, expected: list[int], reading: Reading = AS_THEY_ARE) -> tuple[str, ...]:
    """Read a set whose shades count its pictures; return the notes."""
    with opened(path, reading) as dataset:
        assert dataset.labels().tolist() == expected
        assert dataset.info.kind == "inputs"
        assert dataset.info.arrays["pixels"].shape == (len(expected), 3, 4, 3)
        assert dataset.info.n_classes is None
        assert dataset.info.labelled
        for size in (1, 4, 1000):
            assert shades_and_labels(dataset, size) == (list(range(len(expected))), expected)
        return dataset.info.notes


@pytest.mark.parametrize("prefix", ["", "pets/", "pets/train/", "./", "été/"])
def test_a_folder_is_a_class_at_any_depth(write, prefix):
    members = class_folders(prefix)
    expected = [ORDER[name.split("/")[-2]] for name in members]
    assert check(write(members), expected) == ()


def test_folders_below_a_class_folder_are_ignored(write):
    names = ["cat/a/1.png", "dog/2.png", "cat/b/c/3.png", "dog/a/4.png"]
    members = {name: plain_png(shade) for shade, name in enumerate(names)}
    check(write(members), [0, 1, 0, 1])


def test_an_empty_folder_is_a_class(write):
    members = {
        "set/": b"",
        "set/bat/": b"",
        "set/bat/x/": b"",
        "set/cow/": b"",
        "set/__MACOSX/": b"",
    }
    members |= class_folders("set/") | {"set/scripts/run.py": b"print()"}
    path = write(members)
    with opened(path) as dataset:
        # `bat` holds a folder, `scripts` a file: neither is an empty class.
        assert dataset.info.class_map == {"cat": 0, "cow": 1, "dog": 2, "emu": 3}


@pytest.mark.parametrize("table", ["labels.csv", "metadata.csv"])
@pytest.mark.parametrize("folder", ["", "pets/"])
@pytest.mark.parametrize("columns", ["file_name,label", "width,class,Path", "﻿image,label"])
def test_a_table_has_the_class_of_each_picture(write, table, folder, columns):
    names = ["images/b.png", "images/a.png", "c, d.png"]
    classes = dict(zip(names, ["dog", "cat", "dog"], strict=True))
    rows = [columns]
    for name in reversed(names):
        cells = {"width": "4", "label": classes[name], "class": classes[name]}
        rows.append(
            ",".join(cells.get(column.lower(), f'"./{name}"') for column in columns.split(","))
        )
    members = {f"{folder}{name}": plain_png(shade) for shade, name in enumerate(names)}
    members[f"{folder}{table}"] = "\r\n".join([*rows, ""]).encode()
    assert check(write(members), [1, 0, 1]) == ()


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("cls", str),
        ("cls", "{}\n".format),
        ("json", lambda label: json.dumps({"label": label, "size": [1, {"a": None}]})),
        ("json", lambda label: json.dumps({"cls": str(label)})),
        ("json", lambda label: json.dumps({"class": label})),
    ],
)
def test_a_file_of_the_same_name_holds_the_class_of_a_picture(write, ending, content):
    members = {}
    for shade, label in enumerate([7, 0, 993]):
        members[f"{shade:06d}.png"] = plain_png(shade)
        members[f"{shade:06d}.{ending}"] = content(label).encode()
    (note,) = check(write(members), [7, 0, 993])
    assert note == "Classes have the numbers that their labels are."


def test_other_json_files_are_left_out(write):
    members = class_folders()
    members |= {name.replace(".png", ".json"): b'[{"boxes": []}]' for name in members}
    (note,) = check(write(members), [ORDER[n.split("/")[0]] for n in members if n.endswith("png")])
    assert note == (
        "9 files that are no pictures were left out, such as "
        f"{next(name for name in members if name.endswith('json'))!r}."
    )


def test_other_files_are_left_out_and_counted(write):
    members = {"pets/README.md": b"# Pets", "pets/.DS_Store": b"\0"} | class_folders("pets/")
    members |= {"__MACOSX/pets/cat/._1.png": b"\0", "pets/cat/Thumbs.db": b"", "pets/dog/": b""}
    (note,) = check(write(members), [ORDER[n.split("/")[1]] for n in class_folders("pets/")])
    assert note == "4 files that are no pictures were left out, such as 'pets/README.md'."


@pytest.mark.parametrize(
    ("reading", "cat"),
    [
        (Reading(WITH, class_map={"cat": 4, "dog": 0, "emu": 2, "yak": 1}), 4),
        (Reading(WITH, classes=["dog", "emu", "yak", "cat"]), 3),
    ],
)
def test_the_caller_says_which_index_a_class_has(write, reading, cat):
    path = write(class_folders())
    with opened(path, reading) as dataset:
        assert dataset.info.class_map["cat"] == cat
        assert np.bincount(dataset.labels())[cat] == CLASSES["cat"]
        assert dataset.info.notes == ()


def test_one_folder_is_a_class_if_the_caller_says_so(write):
    path = write({"all/cat/1.png": plain_png(0), "all/cat/2.png": plain_png(1)})
    check(path, [5, 5], Reading(WITH, class_map={"cat": 5}))
    with (
        pytest.raises(InvalidDataset, match="a folder for each of at least two classes"),
        opened(path),
    ):
        pass


def test_pictures_without_labels_are_a_set_where_none_are_required(write):
    for folder in ("", "pets/"):
        path = write({f"{folder}{shade}.png": plain_png(shade) for shade in range(5)})
        with opened(path, labels_required=False) as dataset:
            assert not dataset.info.labelled
            assert dataset.info.class_map is None
            assert shades_and_labels(dataset) == (list(range(5)), [0] * 5)
        with pytest.raises(InvalidDataset, match="expected a class for each picture"), opened(path):
            pass


def test_a_table_without_classes_is_of_a_set_without_labels(write):
    path = write({"1.png": plain_png(0), "metadata.csv": b"file_name,text\n1.png,a cat\n"})
    with opened(path, labels_required=False) as dataset:
        assert not dataset.info.labelled
    with pytest.raises(InvalidDataset, match="label, class"), opened(path):
        pass


def test_pictures_of_all_formats_are_brought_to_one_size(write):
    sizes = [(300, 260), (256, 256), (500, 300), (260, 700)]
    members = {f"{k % 2}/{k}.JPG": jpeg(*size, seed=k) for k, size in enumerate(sizes)}
    with opened(write(members), Reading(PRESETS["imagenet"])) as dataset:
        assert dataset.info.row_bytes == 224 * 224 * 3
        (batch,) = dataset.batches(10)
        for row, content in enumerate(members.values()):
            expected = read_picture(content, PRESETS["imagenet"], place="x")
            np.testing.assert_array_equal(batch.arrays["pixels"][row], expected)


@pytest.mark.parametrize(
    ("preprocessing", "shape"),
    [
        (Preprocessing(crop=(2, 3)), (2, 3, 3)),
        (Preprocessing(resize=(5, 6)), (5, 6, 3)),
        (Preprocessing(resize=6), (6, 8, 3)),
        (Preprocessing(colour="grey", mean=(0,), std=(1,)), (3, 4, 1)),
    ],
)
def test_the_shape_is_known_at_once(write, preprocessing, shape):
    with opened(write(class_folders()), Reading(preprocessing)) as dataset:
        assert dataset.info.arrays["pixels"].shape == (9, *shape)
        assert next(dataset.batches(2)).arrays["pixels"].shape == (2, *shape)
