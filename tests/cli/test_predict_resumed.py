"""A scoring that was killed goes on where it was, and ends in the same bytes; no other does."""

import fcntl
import io
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from howsure_command import Command, howsure
from runner_children import wait_until
from running_service import DIGITS, calibrate
from running_service import digits as digits_file
from scraped import scrape
from served_process import ServedProcess
from severed_address import SeveredAddress

from service.cli.failure import CommandFailed
from service.cli.scoring.score_file import Scoring, score_file

CONFIG = '{"name": "digits", "measures": ["entropy"], "bins": 5, "folds": 2}'
ROWS_PER_PART = 128
N_ROWS = 600


def calibrated(client: httpx.Client) -> dict:
    answer = calibrate(
        client,
        model=digits_file("model.onnx"),
        calibration=digits_file("calibration.npz"),
        config=CONFIG,
    )
    assert answer.json()["status"] == "succeeded", answer.text
    return answer.json()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with ServedProcess(tmp_path_factory.mktemp("served")) as client:
        calibrated(client)
        yield client


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
            was_over, self._left = self.is_over, self._left - len(self._peeked(key))
            if self.is_over and not was_over:
                self._then()
        return super()._moved(key, mask)

    @staticmethod
    def _peeked(key) -> bytes:
        return key.fileobj.recv(2**16, socket.MSG_PEEK)


def answer_bytes(client: httpx.Client) -> int:
    """Return how long the answer to a part is."""
    body = io.BytesIO()
    np.savez(body, inputs=np.zeros((ROWS_PER_PART, 64), np.uint8))
    headers = dict.fromkeys(("Content-Type", "Accept"), "application/x-npz")
    params = {"calibration": "digits"}
    answer = client.post("/predict", content=body.getvalue(), headers=headers, params=params)
    return len(answer.raise_for_status().content)


def rows_answered(client: httpx.Client) -> float:
    return scrape(client)("predict_rows_total")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_a_killed_scoring_goes_on_to_the_same_bytes(served, source, tmp_path, ending) -> None:
    out, parts = tmp_path / f"answers{ending}", tmp_path / f"answers{ending}.parts"
    undisturbed = tmp_path / f"undisturbed{ending}"
    score_file(served, Scoring("digits", source, undisturbed, rows=ROWS_PER_PART))

    def words(url: object) -> list[str]:
        rows = ["--rows", str(ROWS_PER_PART), "--url", str(url)]
        return ["predict", "digits", str(source), "-o", str(out), *rows]

    def made() -> list[Path]:
        return sorted(parts.glob("0*.npz"))

    # Three are under way at a time: of three and a half, one at least has come whole.
    with Relay(served, 3.5 * answer_bytes(served)) as address:
        logs = {"out": tmp_path / "out.log", "err": tmp_path / "err.log"}
        killed = Command(words(address.url), folder=tmp_path, settings={}, **logs)
        assert wait_until(lambda: address.is_over and made(), seconds=60)
        killed.kill()
        killed.wait(30)
    kept = made()
    assert 1 <= len(kept) <= 3
    assert not out.exists()
    (parts / "part").write_bytes(b"half of one")
    before = rows_answered(served)

    done = howsure(*words(served.base_url), folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == [str(N_ROWS), "rows"]
    assert out.read_bytes() == undisturbed.read_bytes()
    assert not parts.exists()
    assert rows_answered(served) - before == N_ROWS - ROWS_PER_PART * len(kept)


def test_an_interrupted_scoring_ends_at_once_and_keeps_what_it_has(
    served, source, tmp_path
) -> None:
    parts = tmp_path / "answers.csv.parts"
    with Relay(served, 3.5 * answer_bytes(served)) as address:
        command = ["predict", "digits", str(source), "-o", "answers.csv", "--url", address.url]
        command += ["--rows", str(ROWS_PER_PART)]
        logs = {"out": tmp_path / "out.log", "err": tmp_path / "err.log"}
        begun = Command(command, folder=tmp_path, settings={}, **logs)
        assert wait_until(lambda: address.is_over and [*parts.glob("0*.npz")], seconds=60)
        begun.send_signal(signal.SIGINT)
        # Far less than what an answer is waited for.
        assert begun.wait(30) != 0
    assert [*parts.glob("0*.npz")]
    assert "Traceback" not in (tmp_path / "err.log").read_text()


def test_a_service_that_goes_away_for_a_moment_is_waited_for(served, source, tmp_path) -> None:
    undisturbed, out = tmp_path / "undisturbed.csv", tmp_path / "answers.csv"
    score_file(served, Scoring("digits", source, undisturbed, rows=ROWS_PER_PART))

    def go_away() -> None:
        threading.Thread(target=address.cut).start()
        threading.Timer(0.5, address.restore).start()

    with (
        Relay(served, 2.5 * answer_bytes(served), go_away) as address,
        httpx.Client(base_url=address.url) as client,
    ):
        score_file(client, Scoring("digits", source, out, rows=ROWS_PER_PART))
        assert address.is_over
    assert out.read_bytes() == undisturbed.read_bytes()


@pytest.fixture
def left(served, source, tmp_path) -> Scoring:
    """A scoring of which all parts were made, and whose result could not be written."""
    scoring = Scoring("digits", source, tmp_path / "answers.csv", rows=ROWS_PER_PART)
    scoring.output.mkdir()
    with pytest.raises(CommandFailed, match="directory"):
        score_file(served, scoring)
    scoring.output.rmdir()
    return scoring


def test_what_was_made_is_not_asked_for_again(served, left) -> None:
    before = rows_answered(served)
    assert score_file(served, left) == N_ROWS
    assert rows_answered(served) == before
    assert len(left.output.read_text().splitlines()) == 1 + N_ROWS
    assert not left.folder.exists()


def test_another_input_is_refused_and_begun_anew_if_asked_to(served, left) -> None:
    with np.load(left.source) as archive:
        np.savez(left.source, inputs=archive["inputs"][:200], labels=archive["labels"][:200])
    with pytest.raises(CommandFailed, match=r"another file.*--restart"):
        score_file(served, left)
    assert len(list(left.folder.glob("0*.npz"))) == 5

    assert score_file(served, replace(left, restart=True)) == 200
    assert len(left.output.read_text().splitlines()) == 1 + 200


def test_other_rows_in_a_part_are_refused(served, left) -> None:
    with pytest.raises(CommandFailed, match=f"--rows {ROWS_PER_PART}"):
        score_file(served, replace(left, rows=100))


def test_another_version_of_the_name_is_refused(served, left) -> None:
    first = served.get("/calibrations/digits").json()
    changes = {"bins": 4}
    made = served.post("/calibrations/digits/refit", json=changes, headers={"Prefer": "wait=60"})
    assert made.json()["status"] == "succeeded"
    try:
        with pytest.raises(CommandFailed, match=f"digits@{first['version']}.*digits@"):
            score_file(served, left)
        # The version that it was begun with may go on.
        named = replace(left, calibration=f"digits@{first['version']}")
        assert score_file(served, named) == N_ROWS
    finally:
        served.delete(f"/calibrations/{made.json()['id']}").raise_for_status()


def test_a_folder_that_is_none_of_this_is_refused(served, left) -> None:
    (left.folder / "manifest.json").write_text("[]")
    with pytest.raises(CommandFailed, match="manifest"):
        score_file(served, left)


def test_two_at_a_time_do_not_write_the_same(served, left) -> None:
    with (left.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(CommandFailed, match="another process"):
            score_file(served, left)
