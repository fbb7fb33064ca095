"""Uploads that break a rule: the error names the part, and nothing is left on disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from request_formats import (
    LIMITS,
    MEBIBYTE,
    RULES,
    body,
    file_part,
    part,
    pieces,
    receive,
    text_part,
)

from service.errors import InvalidInput, MalformedRequest, ServiceError, TooLarge, UnsupportedFormat

FORM = 'Content-Disposition: form-data; name="model"; filename="a"'
BASE64 = "Content-Transfer-Encoding: base64"
A_FILE, A_SET = file_part("model", "a"), file_part("calibration", "a")
A_TEXT = text_part("config", b"{}")
BYTES_OF_TEXT = RULES["config"].max_bytes
# What is sent, the failure, and where it is.
CASES: dict[str, tuple[bytes, type[ServiceError], str]] = {
    "nothing": (b"", MalformedRequest, "body"),
    "no form": (b'{"bins": 10}', MalformedRequest, "body"),
    "another boundary": (b"--other\r\n\r\n--other--\r\n", MalformedRequest, "body"),
    "cut in a header": (A_FILE[:30], MalformedRequest, "body"),
    "cut in the data": (file_part("model", "a", b"x" * 999)[:300], MalformedRequest, "body"),
    "cut before the end": (A_FILE, MalformedRequest, "body"),
    "no disposition": (body(part("Content-Type: text/plain")), MalformedRequest, "body"),
    "attachment": (body(part(FORM.replace("form-data", "attachment"))), MalformedRequest, "body"),
    "no name": (body(part("Content-Disposition: form-data")), MalformedRequest, "body"),
    "a header twice": (body(part(f"{FORM}\r\n{FORM}")), MalformedRequest, "body"),
    "header without a colon": (body(part("Content Disposition")), MalformedRequest, "body"),
    "endless header": (body(part("X: " + "x" * 100_000)), TooLarge, "body"),
    "many headers": (body(part("X: 1\r\n" * 999 + "X: 1")), MalformedRequest, "body"),
    "unknown part": (body(text_part("a\x1b[2J", b"{}")), InvalidInput, "a\\x1b[2J"),
    "part without a name": (body(text_part("", b"{}")), InvalidInput, "body"),
    "text twice": (body(A_TEXT, A_TEXT), InvalidInput, "config"),
    "file twice": (body(A_SET, A_SET), InvalidInput, "calibration"),
    "text for a file": (body(text_part("calibration", b"a.npz")), InvalidInput, "calibration"),
    "file without a name": (body(file_part("calibration", "", b"x")), InvalidInput, "calibration"),
    "text no UTF-8": (body(text_part("config", b"\xff\xfe")), InvalidInput, "config"),
    "encoded": (body(part(f"{FORM}\r\n{BASE64}")), UnsupportedFormat, "model"),
    "file too large": (body(file_part("model", "b", b"x" * (MEBIBYTE + 1))), TooLarge, "model"),
    "text too large": (body(text_part("config", b"x" * (BYTES_OF_TEXT + 1))), TooLarge, "config"),
    "too many parts": (body(*[A_FILE] * (LIMITS.max_parts + 1)), TooLarge, "body"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refused_body_leaves_nothing(tmp_path: Path, case: str) -> None:
    data, error_class, location = CASES[case]
    for size in (65_536, 1009 if len(data) > 100_000 else 7):
        with pytest.raises(error_class) as refused:
            receive(tmp_path, pieces(data, [size]))
        assert type(refused.value) is error_class
        assert refused.value.violations[0].location == location
        assert str(tmp_path) not in refused.value.message
        assert list(tmp_path.iterdir()) == []


OTHER_TYPES = ["", "application/json", "multipart/mixed; boundary=a-boundary", "é; " * 3, "\u20ac"]
BAD_BOUNDARIES = ["", "; boundary=", f"; boundary={'x' * 257}", "; boundary*=utf-8''a-boundary"]


def test_other_media_types_are_refused_unread(tmp_path: Path) -> None:
    def unread() -> Iterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    cases = [(content_type, UnsupportedFormat) for content_type in OTHER_TYPES]
    cases += [(f"multipart/form-data{rest}", MalformedRequest) for rest in BAD_BOUNDARIES]
    for content_type, error_class in cases:
        with pytest.raises(error_class) as refused:
            receive(tmp_path, unread(), content_type=content_type)
        assert type(refused.value) is error_class
        assert refused.value.violations[0].location == "content-type"
