"""A scoring that was stopped continues where it was; another one does not continue its parts."""

import fcntl
from dataclasses import replace

import httpx
import numpy as np
import pytest
from running_service import DIGITS, DIGITS_PARTS, Growth, calibrated, refit

from service.cli.connection import Address
from service.cli.failure import CommandFailed
from service.cli.scoring.score_file import Scoring, score_file

NAME = "resumed"
ROWS_PER_PART = 128
N_ROWS = 600


@pytest.fixture(scope="module", autouse=True)
def calibration(client: httpx.Client) -> None:
    """A calibration that gets further versions."""
    calibrated(client, {"name": NAME}, **DIGITS_PARTS)


def score(client: httpx.Client, scoring: Scoring) -> int:
    return score_file(Address(str(client.base_url)), scoring).n_rows


@pytest.fixture
def stopped(client, tmp_path) -> Scoring:
    """A scoring of which all parts were made, and whose result could not be written."""
    output = tmp_path / "answers.npz"
    scoring = Scoring(NAME, DIGITS / "evaluation.npz", output, rows=ROWS_PER_PART)
    output.mkdir()
    with pytest.raises(IsADirectoryError):
        score(client, scoring)
    output.rmdir()
    return scoring


def test_only_missing_parts_are_requested(client, stopped, tmp_path) -> None:
    """A kill leaves whole parts, because they are renamed, and the beginning of another."""
    undisturbed = replace(stopped, output=tmp_path / "undisturbed.npz")
    score(client, undisturbed)
    (stopped.folder / "00000001.npz").unlink()
    (stopped.folder / "part").write_bytes(b"half of one")
    growth = Growth(client)

    assert score(client, stopped) == N_ROWS

    assert growth("predict_rows_total") == ROWS_PER_PART
    assert not stopped.folder.exists()
    with np.load(stopped.output) as resumed, np.load(undisturbed.output) as expected:
        assert resumed.files == expected.files
        assert resumed["class"].tolist() == expected["class"].tolist()


def test_another_input_is_refused_and_begun_anew_on_request(client, stopped, tmp_path) -> None:
    with pytest.raises(CommandFailed, match=f"rows_per_part is {ROWS_PER_PART} there and 100"):
        score(client, replace(stopped, rows=100))
    with np.load(stopped.source) as archive:
        np.savez(tmp_path / "rows.npz", inputs=archive["inputs"][:200])
    other = replace(stopped, source=tmp_path / "rows.npz")
    with pytest.raises(CommandFailed, match=r"input_sha256.*--restart"):
        score(client, other)
    assert len(list(stopped.folder.glob("0*.npz"))) == 5

    assert score(client, replace(other, restart=True)) == 200


def test_another_version_of_the_name_is_refused(client, stopped) -> None:
    first = client.get("/calibrations/resumed").json()
    second = refit(client, NAME, bins=4).json()
    try:
        with pytest.raises(CommandFailed, match=f"resumed@{first['version']}.*resumed@"):
            score(client, stopped)
        # The version that it was begun with may go on.
        named = replace(stopped, calibration=f"resumed@{first['version']}")
        assert score(client, named) == N_ROWS
    finally:
        client.delete(f"/calibrations/{second['id']}").raise_for_status()


def test_a_folder_of_another_kind_or_in_use_is_refused(client, stopped) -> None:
    with (stopped.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(CommandFailed, match="another process"):
            score(client, stopped)
    (stopped.folder / "manifest.json").write_text("[]")
    with pytest.raises(CommandFailed, match=r"manifest\.json: input_sha256"):
        score(client, stopped)
