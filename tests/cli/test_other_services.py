"""A command whose service is none, or a broken one, ends with one sentence."""

import gzip
import json

import pytest
from howsure_command import howsure
from scripted_server import scripted

COMMANDS = [("list",), ("report", "x"), ("compare", "x", "y"), ("export", "x"), ("promote", "x@1")]
# No JSON, too deep, other kinds of values, and a problem that is none.
BODIES = [b"<html>", b"[" * 100_000, b"[1]", b"7", b"{}", b'{"id": 7, "calibrations": "x"}']
PROBLEM = b'{"title": 7, "detail": ["\\u001b]0;x"], "errors": [7, {"location": 1}], "status": "x"}'
OTHERS = [(422, {}, PROBLEM), (302, {"Location": "/x"}, b"")]
ANSWERS = [*((200, {}, body) for body in BODIES), *OTHERS]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_response_of_another_form_is_told_in_a_sentence(tmp_path, command) -> None:
    for answer in ANSWERS:
        with scripted(answer) as server:
            done = howsure(*command, "--url", server.url, folder=tmp_path)
        assert done.returncode == 1, answer
        assert len(done.stderr.splitlines()) == 1, answer
        assert "\x1b]" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_response_that_does_not_end_is_given_up(tmp_path) -> None:
    endless = gzip.compress(bytes(2**28 + 1), 1)
    with scripted((200, {"Content-Encoding": "gzip"}, endless)) as server:
        done = howsure("list", "--url", server.url, folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "limit of 268435456 bytes" in done.stderr


HOSTILE = ":dog: \x1b]0;x\x9b"
RESOURCE = {"id": HOSTILE, "name": HOSTILE, "version": 1, "status": "succeeded"}
RESOURCE |= {"data": {}, "config": {}, "promoted": False, "findings": [], "warnings": []}
HEADERS = {"Howsure-Parity": "samples=1; probability=0"}
NAMED = json.dumps(RESOURCE).encode()


@pytest.mark.parametrize("command", [("promote", "x@1"), ("delete", "x@1", "--yes")])
def test_names_that_a_service_sends_are_printed_as_escapes(tmp_path, command) -> None:
    with scripted((200, {}, NAMED)) as server:
        done = howsure(*command, "--url", server.url, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert r":dog: \u001b]0;x\u009b@1" in done.stdout


NAMES = ["new.onnx", "../../new.onnx", "/new.onnx", "old.onnx", ".new.onnx", "conftest.py", ".."]
NAMES += [""]


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_model_is_a_new_file_of_this_folder(tmp_path, name) -> None:
    (tmp_path / "old.onnx").write_bytes(b"old")
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    with scripted((200, {}, NAMED), (200, HEADERS | disposition, b"new")) as server:
        howsure("export", "x", "--url", server.url, folder=tmp_path)
    written = {"new.onnx": b"new"} if name.split("/")[-1] == "new.onnx" else {}
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert files == {"old.onnx": b"old"} | written
