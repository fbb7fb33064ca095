"""A scoring that was killed continues where it was; another one does not continue its parts."""

import fcntl
import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from howsure_command import Command
from runner_children import wait_until
from running_service import DIGITS, DIGITS_PARTS, NPZ, calibrated, npz, refit, scrape, send
from severed_address import SeveredAddress

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


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with np.load(DIGITS / "evaluation.npz") as archive:
        np.savez(tmp_path / "rows.npz", **archive)
    return tmp_path / "rows.npz"


class Relay(SeveredAddress):
    """Passes so many bytes of answers on and then falls silent, or calls ``then``."""

    def __init__(self, client: httpx.Client, passed: float, then=None) -> None:
        self._left = passed
        self._then = then or self.silence
        super().__init__(client.base_url.host, client.base_url.port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    def _moved(self, key, mask) -> bool:
        _, port = key.fileobj.getpeername()
        if port == self._to[1]:
            # As much as may come at a time; the rest of it is not needed.
            chunk = key.fileobj.recv(2**16, socket.MSG_PEEK)
            was_over, self._left = self.is_over, self._left - len(chunk)
            if self.is_over and not was_over:
                self._then()
        return super()._moved(key, mask)


def answer_bytes(client: httpx.Client) -> int:
    """Return how long the answer to a part is."""
    body = npz(inputs=np.zeros((ROWS_PER_PART, 64), np.uint8))
    answer = send(client, NAME, body, NPZ | {"Accept": NPZ["Content-Type"]})
    return len(answer.raise_for_status().content)


def rows_answered(client: httpx.Client) -> float:
    return scrape(client)("predict_rows_total")


def score(client: httpx.Client, scoring: Scoring) -> int:
    return score_file(Address(str(client.base_url)), scoring).n_rows


def assert_same_answers(found: Path, expected: Path) -> None:
    """Compare results of runs that batched the rows differently."""
    with np.load(found) as one, np.load(expected) as other:
        assert one.files == other.files
        for name in one.files:
            if one[name].dtype.kind == "f":
                np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-6)
            else:
                assert one[name].tolist() == other[name].tolist(), name


@pytest.fixture
def undisturbed(client, source, tmp_path) -> Path:
    path = tmp_path / "undisturbed.npz"
    score(client, Scoring(NAME, source, path, rows=ROWS_PER_PART))
    return path


def begun(address: Relay, source: Path, folder: Path) -> Command:
    """Start the command, and return it once it has some parts and waits for others."""
    words = ["predict", NAME, str(source), "-o", "answers.npz", "--url", address.url]
    logs = {"out": folder / "out.log", "err": folder / "err.log"}
    rows = ["--rows", str(ROWS_PER_PART)]
    command = Command([*words, *rows], folder=folder, settings={}, **logs)
    assert wait_until(lambda: address.is_over and made(folder), seconds=60)
    return command


def made(folder: Path) -> list[Path]:
    return sorted((folder / "answers.npz.parts").glob("0*.npz"))


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
    ids=lambda number: number.name,
)
def test_a_scoring_that_was_ended_continues_where_it_was(
    client, source, tmp_path, undisturbed, number
) -> None:
    out = tmp_path / "answers.npz"
    # Three are under way at a time: of three and a half, one at least has come whole.
    with Relay(client, 3.5 * answer_bytes(client)) as address:
        ended = begun(address, source, tmp_path)
        ended.send_signal(number)
        # Far less than what an answer is waited for.
        assert ended.wait(30) != 0
    assert "Traceback" not in (tmp_path / "err.log").read_text()
    kept = made(tmp_path)
    assert 1 <= len(kept) <= 3
    assert not out.exists()
    n_kept = sum(len(np.load(part)["class"]) for part in kept)
    (kept[0].parent / "part").write_bytes(b"half of one")
    before = rows_answered(client)

    assert score(client, Scoring(NAME, source, out, rows=ROWS_PER_PART)) == N_ROWS

    assert_same_answers(out, undisturbed)
    assert not kept[0].parent.exists()
    assert rows_answered(client) - before == N_ROWS - n_kept


def test_a_service_that_goes_away_for_a_moment_is_waited_for(
    client, source, tmp_path, undisturbed
) -> None:
    def go_away() -> None:
        threading.Thread(target=address.cut).start()
        threading.Timer(0.1, address.restore).start()

    out = tmp_path / "answers.npz"
    with Relay(client, 2.5 * answer_bytes(client), go_away) as address:
        score_file(Address(address.url), Scoring(NAME, source, out, rows=ROWS_PER_PART))
        assert address.is_over
    assert_same_answers(out, undisturbed)


@pytest.fixture
def left(client, source, tmp_path) -> Scoring:
    """A scoring of which all parts were made, and whose result could not be written."""
    scoring = Scoring(NAME, source, tmp_path / "answers.csv", rows=ROWS_PER_PART)
    scoring.output.mkdir()
    with pytest.raises(IsADirectoryError):
        score(client, scoring)
    scoring.output.rmdir()
    return scoring


def test_what_was_made_is_not_asked_for_again(client, left) -> None:
    before = rows_answered(client)
    assert score(client, left) == N_ROWS
    assert rows_answered(client) == before
    assert len(left.output.read_text().splitlines()) == 1 + N_ROWS
    assert not left.folder.exists()


def test_another_input_is_refused_and_begun_anew_if_asked_to(client, left) -> None:
    with pytest.raises(CommandFailed, match=f"rows_per_part is {ROWS_PER_PART} there and 100"):
        score(client, replace(left, rows=100))
    with np.load(left.source) as archive:
        np.savez(left.source, inputs=archive["inputs"][:200], labels=archive["labels"][:200])
    with pytest.raises(CommandFailed, match=r"input_sha256.*--restart"):
        score(client, left)
    assert len(list(left.folder.glob("0*.npz"))) == 5

    assert score(client, replace(left, restart=True)) == 200
    assert len(left.output.read_text().splitlines()) == 1 + 200


def test_another_version_of_the_name_is_refused(client, left) -> None:
    first = client.get("/calibrations/resumed").json()
    made = refit(client, NAME, bins=4)
    assert made.json()["status"] == "succeeded"
    try:
        with pytest.raises(CommandFailed, match=f"resumed@{first['version']}.*resumed@"):
            score(client, left)
        # The version that it was begun with may go on.
        named = replace(left, calibration=f"resumed@{first['version']}")
        assert score(client, named) == N_ROWS
    finally:
        client.delete(f"/calibrations/{made.json()['id']}").raise_for_status()


def test_a_folder_that_is_none_of_this_is_refused(client, left) -> None:
    (left.folder / "manifest.json").write_text("[]")
    with pytest.raises(CommandFailed, match=r"manifest\.json: input_sha256"):
        score(client, left)


def test_two_at_a_time_do_not_write_the_same(client, left) -> None:
    with (left.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(CommandFailed, match="another process"):
            score(client, left)
