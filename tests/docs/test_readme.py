"""The README's two curl commands give what it shows."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running_service import service_on

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_on(tmp_path_factory.mktemp("readme"), on_port=True) as client:
        yield client


def test_the_commands_give_what_is_shown(client: httpx.Client) -> None:
    commands = [
        c for c in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL) if "curl" in c
    ]
    calibrate, predict = (answer_of(command, client) for command in commands)
    assert calibrate["status"] == "succeeded", calibrate["error"]
    shown = re.findall(r'^("top1": .*)$', README, re.MULTILINE)
    for row, line in zip(predict["predictions"], shown, strict=True):
        top1, expected = row["top1"], json.loads(f"{{{line}}}")["top1"]
        assert list(top1) == list(expected)
        assert (top1["measure"], top1["bin"]) == (expected["measure"], expected["bin"])
        assert top1["probability"] == pytest.approx(expected["probability"], abs=0.001)
        assert top1["interval"] == pytest.approx(expected["interval"], abs=0.001)
        assert top1["uncertainty"] == pytest.approx(expected["uncertainty"], rel=0.02)


def answer_of(command: str, client: httpx.Client) -> dict:
    assert ADDRESS in command
    done = subprocess.run(  # noqa: S602 - the README's own command
        command.replace(ADDRESS, str(client.base_url).rstrip("/")),
        shell=True,
        check=True,
        capture_output=True,
        cwd=ROOT,
        timeout=120,
    )
    return json.loads(done.stdout)
