"""Pictures in archives: each layout brings every picture with its own label, in order."""

import json
from pathlib import Path

import pytest
from picture_files import (
    AS_THEY_ARE,
    WRITERS,
    class_folders,
    opened,
    plain_png,
    refused_at,
    shades_and_labels,
)

from howsure.preprocessing import Preprocessing
from service.runner.messages.reading import Reading

ORDER = {"cat": 0, "dog": 1, "emu": 2}
WITH = Preprocessing()


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    return lambda members: WRITERS[request.param](tmp_path / "set", members)


def pictures(*names: str) -> dict[str, bytes]:
    return {name: plain_png(shade) for shade, name in enumerate(names)}


def check(path: Path, expected: list[int], reading: Reading = AS_THEY_ARE) -> tuple[str, ...]:
    """Read a set whose shades count its pictures; return the notes."""
    with opened(path, reading) as dataset:
        assert dataset.labels().tolist() == expected
        assert (dataset.info.kind, dataset.info.n_classes) == ("inputs", None)
        assert dataset.info.arrays["pixels"].shape == (len(expected), 3, 4, 3)
        assert dataset.info.labelled
        for size in (1, 4, 1000):
            assert shades_and_labels(dataset, size) == (list(range(len(expected))), expected)
        return dataset.info.notes


FOLDERS = [ORDER[name.split("/")[0]] for name in class_folders()]


@pytest.mark.parametrize("prefix", ["", "pets/", "pets/train/", "./", "été/"])
def test_a_folder_is_a_class_at_any_depth(write, prefix):
    assert check(write(class_folders(prefix)), FOLDERS) == ()


def test_an_empty_folder_is_a_class(write):
    folders = ("set/", "set/bat/", "set/bat/x/", "set/cow/", "set/__MACOSX/")
    members = dict.fromkeys(folders, b"") | class_folders("set/")
    with opened(write(members | {"set/scripts/run.py": b"print()"})) as dataset:
        # `bat` holds a folder, `scripts` a file: neither is an empty class.
        assert dataset.info.class_map == {"cat": 0, "cow": 1, "dog": 2, "emu": 3}


@pytest.mark.parametrize("table", ["labels.csv", "pets/metadata.csv"])
@pytest.mark.parametrize("columns", ["file_name,label", "width,class,Path", "\ufeffimage,label"])
def test_a_table_has_the_class_of_each_picture(write, table, columns):
    folder = table.rpartition("/")[0]
    folder += "/" if folder else ""
    classes = {"images/b.png": "dog", "images/a.png": "cat", "c, d.png": "dog"}
    rows = [columns]
    for name in reversed(classes):
        cells = {"width": "4", "label": classes[name], "class": classes[name]}
        rows.append(",".join(cells.get(one.lower(), f'"./{name}"') for one in columns.split(",")))
    members = pictures(*(folder + name for name in classes))
    members[table] = "\r\n".join([*rows, ""]).encode()
    assert check(write(members), [1, 0, 1]) == ()


def test_folders_may_be_separated_as_in_windows(write):
    members = class_folders()
    assert check(write({n.replace("/", "\\"): data for n, data in members.items()}), FOLDERS) == ()


CLASS_FILES = [("cls", str), ("cls", "{}\n".format)]
CLASS_FILES += [("json", lambda label: json.dumps({"label": label, "size": [1, {"a": None}]}))]
CLASS_FILES += [("json", lambda label: json.dumps({"cls": str(label)}))]
CLASS_FILES += [("json", lambda label: json.dumps({"class": label}))]


@pytest.mark.parametrize(("ending", "content"), CLASS_FILES)
def test_a_file_of_the_same_name_holds_the_class_of_a_picture(write, ending, content):
    labels = [7, 0, 993]
    members = pictures("0.png", "1.png", "2.png")
    members |= {f"{k}.{ending}": content(label).encode() for k, label in enumerate(labels)}
    assert len(check(write(members), labels)) == 1


OTHERS = [
    ({name.replace("png", "json"): b'[{"boxes": []}]' for name in class_folders()}, "json"),
    (
        {"README.md": b"# Pets", ".DS_Store": b"\0", "__MACOSX/cat/._1.png": b"\0"}
        | {".ipynb_checkpoints/1-checkpoint.png": b"", "cat/.thumbnails/1.png": b""}
        | {"cat/Thumbs.db": b"", "dog/": b""},
        "README.md",
    ),
]


@pytest.mark.parametrize(("others", "first"), OTHERS)
def test_other_files_are_left_out_and_counted(write, others, first):
    (note,) = check(write(others | class_folders()), FOLDERS)
    assert note.startswith(f"{sum(not name.endswith('/') for name in others)} files")
    assert first in note


def test_one_folder_is_a_class_if_the_caller_says_so(write):
    path = write(pictures("all/cat/1.png", "all/cat/2.png"))
    check(path, [5, 5], Reading(WITH, class_map={"cat": 5}))
    assert refused_at(path) == "calibration"


UNLABELLED = [
    pictures(*(f"{k}.png" for k in range(5))),
    pictures(*(f"pets/{k}.png" for k in range(5))),
    pictures("1.png") | {"metadata.csv": b"file_name,text\n1.png,a cat\n"},
]


@pytest.mark.parametrize("members", UNLABELLED)
def test_pictures_without_labels_are_a_set_where_none_are_required(write, members):
    path = write(members)
    n_pictures = sum(name.endswith("png") for name in members)
    with opened(path, labels_required=False) as dataset:
        assert not dataset.info.labelled
        assert dataset.info.class_map is None
        assert shades_and_labels(dataset) == (list(range(n_pictures)), [0] * n_pictures)
    refused_at(path)
