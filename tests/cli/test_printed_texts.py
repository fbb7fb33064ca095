"""What commands print, as whole texts in ``tests/golden/cli``: each holds the commands as well."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from golden_texts import GOLDEN
from howsure_command import howsure
from running_service import DIGITS, quick_config

from service.cli import load_command

TEXTS = GOLDEN / "cli"
# Scores have as many digits as another machine may change: they are compared elsewhere.
VARYING = (
    (re.compile(r"\d\.\d{3,}"), "#.####"),
    (re.compile(r"[\d.]+ kB"), "<size>"),
    (re.compile(r"cal_\w+"), "<key>"),
    (re.compile(r"\bkey \w{12}\b"), "key <id>"),
    (re.compile(r"\x1b\[[\d;]*m"), ""),
)
FILES = {
    "list.json": b"[1]",
    "jpeg.json": b"\xff\xd8\xff\xe0",
    "animated.gif": b"GIF89a\xff",
    "rows.txt": b"a,b\n1,2\n",
    "deep.json": b"[" * 10_000,
    "columns.json": b'{"age": {"0": 41, "1": 42}}',
    "lines.json": b'{"age": 41}\n{"age": 42}\n',
    "row.json": b'{"age": 41}',
}


def csv_of(labels: np.ndarray, logits: np.ndarray) -> str:
    header = ",".join(["label", *(f"logit_{k}" for k in range(logits.shape[1]))])
    rows = (",".join(map(str, [label, *row])) for label, row in zip(labels, logits, strict=True))
    return "\n".join([header, *rows, ""])


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with outputs of the digits and small files with a fault each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = (DIGITS / "calibration_logits.csv").read_text()
    header, *rows = table.splitlines()
    few = np.arange(40) % 4
    logits = (np.eye(4)[few] * 3 + rng.random((40, 4))).round(3)
    low = rng.normal(size=(256, 10)).round(3)
    mistaken = np.where(rng.random(256) < 0.6, rng.integers(0, 10, 256), low.argmax(axis=1))
    texts = {
        "first.csv": "\n".join([header, *rows[:300], ""]),
        "second.csv": "\n".join([header, *rows[300:], ""]),
        "unlabelled.csv": "".join(row.partition(",")[2] + "\n" for row in [header, *rows[240:300]]),
        "few.csv": csv_of(few, logits),
        "low.csv": csv_of(mistaken, low),
        "wrong.csv": csv_of((few + 1) % 4, logits),
        "percent.csv": "score,correct\n" + "".join(f"{k}.5,{int(k > 30)}\n" for k in range(100)),
        "quick.json": quick_config(),
        "classes.json": json.dumps([f"[class {k}]" for k in range(10)]),
        "rows.json": json.dumps({"logits": [*(30 * np.eye(10)[:3]).tolist(), [0] * 10]}),
    }
    for name, content in (texts | FILES).items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("digits").symlink_to(DIGITS)
    return tmp_path


def printed_by(line: str, **settings: object) -> str:
    """Run a line of a text; return what it prints, and its exit status unless it is 0."""
    variables, _, words = line.removeprefix("$ ").partition("howsure ")
    settings |= dict(word.split("=", 1) for word in shlex.split(variables))
    done = howsure(*shlex.split(words), **settings | {"COLUMNS": "80"})
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    printed = done.stdout + done.stderr
    for pattern, kind in VARYING:
        printed = pattern.sub(kind, printed)
    status = f"[{done.returncode}]\n" if done.returncode else ""
    return f"{line}\n{printed}{status}\n"


@pytest.mark.parametrize(
    "text", sorted(path.relative_to(TEXTS).as_posix() for path in TEXTS.rglob("*.txt"))
)
def test_commands_print(text: str, sets: Path, service, shelf, digits_calibration, golden) -> None:
    """Lines of a text that begin with ``$ `` are run, and what they print is compared."""
    for name in ("logits", "pairs"):
        shelf(name)
    on_a_service = text.startswith("on-a-service/")
    place = {"HOWSURE_URL": service.url} if on_a_service else {"folder": sets}
    lines = [line for line in (TEXTS / text).read_text().splitlines() if line.startswith("$ ")]
    printed = "".join(printed_by(line, **place) for line in lines)
    golden(f"cli/{text}", printed.replace(str(sets), "<folder>"))


def test_the_printed_activation_is_a_command(command, shelf) -> None:
    name = shelf("evaluated-digits")["name"]
    *_, last = command("operating-point", name, "--max-risk", "0.1").stdout.splitlines()
    words = shlex.split(last.partition(": howsure ")[2])
    options = load_command(words[0]).make_context(words[0], words[1:]).params
    assert (options["max_risk"], options["author"], options["activate"]) == (0.1, "NAME", True)
