"""Uploads: parts arrive whole, in constant memory; file names are labels only."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_process import peak_of
from request_formats import (
    BOUNDARY,
    CONTENT_TYPE,
    LIMITS,
    MEBIBYTE,
    RULES,
    body,
    file_part,
    pieces,
    receive,
    text_part,
)

from service.errors import TooLarge
from service.http.uploads import PartRule

# Data that looks like the end of a part, and plain bytes.
contents = st.lists(
    st.sampled_from([b"\r", b"\n", b"--", b"\r\n--", BOUNDARY, b"\r\n--" + BOUNDARY[:-1], b"\0x"])
    | st.binary(max_size=20),
    max_size=8,
).map(lambda found: b"".join(found).replace(b"\r\n--" + BOUNDARY, b""))


@settings(deadline=None)
@given(
    files=st.lists(contents, max_size=3),
    text=st.none() | st.text(max_size=50),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
def test_parts_arrive_whole_in_any_pieces(
    tmp_path_factory: pytest.TempPathFactory, files: list[bytes], text: str | None, sizes: list[int]
) -> None:
    parts = [file_part("model", f"{i}.onnx", data) for i, data in enumerate(files)]
    if text is not None:
        parts.append(text_part("config", text.encode()))
    folder = tmp_path_factory.mktemp("spool")
    upload = receive(folder, pieces(body(*parts), sizes))
    found = upload.files("model")
    assert [file.path.read_bytes() for file in found] == files
    assert [file.sha256 for file in found] == [hashlib.sha256(data).hexdigest() for data in files]
    assert [file.size for file in found] == [len(data) for data in files]
    assert [file.label for file in found] == [f"{i}.onnx" for i in range(len(files))]
    assert upload.text("config") == text
    assert upload.files("calibration") == []
    upload.discard()
    assert list(folder.iterdir()) == []


LABELS = {
    "../../etc/passwd": "passwd",
    "C:\\\\models\\\\net.onnx": "net.onnx",
    "/": "unnamed",
    "..": "unnamed",
    " padded ": "padded",
    "a\x1b[31m\x7f.onnx": "a[31m.onnx",
    "exe\u202egnp.onnx": "exegnp.onnx",
    'say \\"hi\\".onnx': 'say "hi".onnx',
    "n" * 400: "n" * 255,
}


def test_file_names_are_labels(tmp_path: Path) -> None:
    for filename, label in LABELS.items():
        (file,) = receive(tmp_path, [body(file_part("model", filename))]).files("model")
        assert file.label == label
        assert file.path.resolve().is_relative_to(tmp_path.resolve())


def test_limits_are_inclusive(tmp_path: Path) -> None:
    data = body(file_part("model", "a", b"x" * MEBIBYTE), text_part("config", b"x" * 1000))
    limits = replace(LIMITS, max_total_bytes=len(data), max_parts=2)
    receive(tmp_path, [data], limits=limits).discard()
    with pytest.raises(TooLarge):
        receive(tmp_path, [data, b"\n"], limits=limits)
    assert list(tmp_path.iterdir()) == []


def test_an_epilogue_and_an_empty_file_field_are_ignored(tmp_path: Path) -> None:
    """A browser sends such a field for each input, without a name and empty."""
    files = (file_part("model", "", b""), file_part("calibration", "c.csv", b"x"))
    data = body(*files, text_part("config", b"{}")) + b"epilogue"
    for content_type in (CONTENT_TYPE, 'multipart/form-data; boundary="a-boundary"'):
        upload = receive(tmp_path, pieces(data, [7]), content_type=content_type)
        assert upload.text("config") == "{}"
        assert upload.files("model") == []
        assert [file.label for file in upload.files("calibration")] == ["c.csv"]
        assert len(list(tmp_path.rglob("part-*"))) == 1
        upload.discard()


@pytest.mark.process
def test_memory_does_not_grow_with_the_body(tmp_path: Path) -> None:
    n_bytes = 50 * MEBIBYTE
    rules = RULES | {"model": PartRule(max_bytes=n_bytes, repeatable=False, is_file=True)}
    chunk = bytes(range(256)) * 256

    def generated() -> Iterator[bytes]:
        yield file_part("model", "a", b"")[:-2]
        for _ in range(n_bytes // len(chunk)):
            yield chunk
        yield b"\r\n" + body()

    peak = peak_of(lambda: receive(tmp_path, generated(), rules=rules))
    assert peak < 6 * MEBIBYTE
