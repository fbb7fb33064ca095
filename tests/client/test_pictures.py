"""Pictures as files: what they are calibrated on, what they are answered, by client and command."""

import csv
from pathlib import Path

import numpy as np
import pytest
from graph_models import steps
from picture_files import encoded, write_tar, write_zip
from runner_models import of_rows
from running_service import QUICK

from howsure.client import Client, HowsureError
from service.cli.connection import Address
from service.cli.scoring.score_file import Scoring, score_file

SIDE, N_CLASSES = 4, 3
CLASSES = ("cat", "dog", "owl")
WEIGHTS = np.random.default_rng(0).normal(0, 0.01, (3 * SIDE * SIDE, N_CLASSES))


NODES = steps("flat = Flatten(x); y = MatMul(flat, w)")


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    """Return pixels [n, height, width, channels]."""
    return np.random.default_rng(1).integers(0, 256, (60, SIDE, SIDE, 3), np.uint8)


@pytest.fixture(scope="module")
def folder(pixels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a folder for each class."""
    root = tmp_path_factory.mktemp("pictures")
    for number, picture in enumerate(pixels):
        path = root / CLASSES[number % N_CLASSES] / f"{number:02d}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded(picture, "PNG"))
    return root


@pytest.fixture(scope="module", autouse=True)
def calibration(client: Client, folder: Path) -> None:
    """A calibration of the folder."""
    options = {"preprocessing": "none", **QUICK, "bins": 2}
    model = of_rows(*NODES, shape=("N", 3, SIDE, SIDE), w=WEIGHTS)
    made = client.calibrate(model, folder, name="sent-pictures", **options)
    assert made.classes == CLASSES
    assert made.resource["data"]["samples"] == 60


def test_files_bytes_and_pixels_are_answered_alike(client, folder, pixels) -> None:
    paths = sorted(folder.rglob("*.png"), key=lambda path: path.name)
    by_file = client.predict("sent-pictures", pictures=paths, rows_per_request=32)
    by_bytes = client.predict("sent-pictures", pictures=[path.read_bytes() for path in paths])
    for one in (paths[0], str(paths[0]), paths[0].read_bytes()):
        assert client.predict("sent-pictures", pictures=one).label == by_file.label[:1]
    by_pixels = client.predict("sent-pictures", pixels=pixels)
    values = pixels.transpose(0, 3, 1, 2).reshape(60, -1).astype(np.float64)
    expected = (values @ WEIGHTS).argmax(axis=1).tolist()
    for found in (by_file, by_bytes, by_pixels):
        assert found.class_.tolist() == expected
        assert found.label == [CLASSES[index] for index in expected]
        np.testing.assert_array_equal(found.top1.bin, by_pixels.top1.bin)


def test_what_is_no_picture_is_told_by_its_name(client, folder, tmp_path) -> None:
    (tmp_path / "words.png").write_text("no picture")
    good = next(folder.rglob("*.png"))
    with pytest.raises(HowsureError) as refused:
        client.predict("sent-pictures", pictures=[good, tmp_path / "words.png"])
    assert "words.png" in refused.value.errors[0]["location"]
    array = np.zeros((2, 8, 8, 3), np.uint8)
    wrong = [
        ({"pictures": []}, ValueError, "at least one"),
        ({"pictures": array}, ValueError, "as pixels"),
        ({"pictures": [good, array[0]]}, TypeError, "picture 1: .* ndarray.* as pixels"),
        ({"pictures": str(folder)}, ValueError, "picture 0: .* folder"),
        ({"inputs": [str(good)]}, ValueError, "as pictures"),
        ({"inputs": [[1.0]], "pictures": [good]}, ValueError, "exactly one"),
    ]
    for rows, exception, message in wrong:
        with pytest.raises(exception, match=message):
            client.predict("sent-pictures", **rows)


@pytest.fixture
def score(url):
    """Score a file, and return the number of rows."""
    return lambda scoring: score_file(Address(url), scoring).n_rows


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_an_archive_is_scored_picture_by_picture(client, score, folder, tmp_path, write) -> None:
    paths = sorted(folder.rglob("*.png"), key=lambda path: path.name)
    # The longest name last, so that no part but that has it.
    names = [path.relative_to(folder).as_posix() for path in paths]
    names[-1] = f"{names[-1][:3]}/the longest name of all.png"
    members = {name: path.read_bytes() for name, path in zip(names, paths, strict=True)}
    source = write(tmp_path / "pictures", members)
    out = tmp_path / "answers.csv"

    score(Scoring("sent-pictures", source, tmp_path / "answers.npz", rows=25))
    assert score(Scoring("sent-pictures", source, out, rows=25)) == 60
    with np.load(tmp_path / "answers.npz") as archive:
        assert archive["file"].tolist() == list(members)

    lines = lines_of(out)
    expected = client.predict("sent-pictures", pictures=paths)
    assert [line["label"] for line in lines] == expected.label
    assert [line["file"] for line in lines] == list(members)
    assert [int(line["true_class"]) for line in lines] == [n % N_CLASSES for n in range(60)]
    assert [line["true_label"] for line in lines] == [CLASSES[n % N_CLASSES] for n in range(60)]
    assert [int(line["top1_bin"]) for line in lines] == expected.top1.bin.tolist()
