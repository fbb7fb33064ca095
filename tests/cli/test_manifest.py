"""A manifest: which sets it lists, and that no set is sent twice."""

from pathlib import Path

import pytest
from howsure_command import howsure
from running_service import DIGITS, DIGITS_PARTS, calibrated

from service.cli.failure import CommandFailed
from service.cli.further_sets.manifest import read_manifest

REFUSED = [
    ("name,type\na,b\n", "column file"),
    ("file,colour\na.npz,red\n", "colour"),
    ("", "no column"),
    ("file\n", "lists no set"),
    ("file\nmissing.npz\n", "no file"),
    ("file,role\na.npz,other\n", "line 2: role"),
    ("file,intensity\na.npz,much\n", "line 2: intensity"),
    ("file,name\na.npz,one\na.npz,one\n", "two sets 'one'"),
    ("file\na.npz,b\n", "more cells"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_line_that_breaks_a_rule_is_named(tmp_path: Path, text, message) -> None:
    (tmp_path / "a.npz").touch()
    manifest = tmp_path / "sets.csv"
    manifest.write_text(text, encoding="utf-8")
    with pytest.raises(CommandFailed, match=message):
        read_manifest(manifest, tmp_path)


def test_what_a_line_leaves_out_has_a_default(tmp_path: Path) -> None:
    (tmp_path / "a.npz").touch()
    manifest = tmp_path / "sets.csv"
    manifest.write_text("\ufefffile,intensity\na.npz,2.5\n", encoding="utf-8")
    (listed,) = read_manifest(manifest, tmp_path)
    assert (listed.name, listed.role, listed.type, listed.intensity) == ("a", "stress", None, 2.5)


def test_a_command_goes_on_where_it_stopped(service, tmp_path: Path) -> None:
    calibrated(service.client, {"name": "listed"}, **DIGITS_PARTS)
    for name in ("first", "second"):
        (tmp_path / f"{name}.npz").write_bytes((DIGITS / "evaluation.npz").read_bytes())
    manifest = tmp_path / "sets.csv"
    words = ("evaluate", "listed", tmp_path, "--manifest", manifest)
    seen = []
    for lines in ("first.npz,blur,1\n", "first.npz,blur,1\nsecond.npz,blur,2\n"):
        manifest.write_text(f"file,type,intensity\n{lines}", encoding="utf-8")
        done = howsure(*words, HOWSURE_URL=service.url, COLUMNS="160")
        assert done.returncode == 0, done.stderr
        seen.append((done.stdout.count("blur"), done.stderr.count(" of ")))
    assert seen == [(1, 1), (2, 1)]
    sets = service.client.get("/calibrations/listed/evaluations").json()["evaluations"]
    assert [(one["name"], one["role"], one["intensity"]) for one in sets] == [
        ("first", "stress", 1.0),
        ("second", "stress", 2.0),
    ]
    both = howsure(*words, "--name", "one", HOWSURE_URL=service.url)
    assert (both.returncode, "--manifest" in both.stderr) == (1, True)
