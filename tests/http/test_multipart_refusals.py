"""Uploads that break a rule: the part is named, and nothing is left on disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from multipart_bodies import LIMITS, MEBIBYTE, body, file_part, part, pieces, receive, text_part

from service.errors import InvalidInput, MalformedRequest, ServiceError, TooLarge, UnsupportedFormat

CASES: dict[str, tuple[bytes, type[ServiceError], str]] = {
    "nothing": (b"", MalformedRequest, "body"),
    "no form": (b'{"bins": 10}', MalformedRequest, "body"),
    "another boundary": (b"--other\r\n\r\n--other--\r\n", MalformedRequest, "body"),
    "cut in a header": (body(file_part("model", "a"))[:30], MalformedRequest, "body"),
    "cut in the data": (body(file_part("model", "a", b"x" * 999))[:300], MalformedRequest, "body"),
    "cut before the end": (file_part("model", "a"), MalformedRequest, "body"),
    "no disposition": (body(part("Content-Type: text/plain")), MalformedRequest, "body"),
    "attachment": (
        body(part('Content-Disposition: attachment; name="model"')),
        MalformedRequest,
        "body",
    ),
    "no name": (body(part("Content-Disposition: form-data")), MalformedRequest, "body"),
    "a header twice": (
        body(
            part(
                'Content-Disposition: form-data; name="model"; filename="a"\r\n'
                'Content-Disposition: form-data; name="config"'
            )
        ),
        MalformedRequest,
        "body",
    ),
    "header without a colon": (body(part("Content Disposition")), MalformedRequest, "body"),
    "endless header": (body(part("X: " + "x" * 100_000)), TooLarge, "body"),
    "many headers": (
        body(part("\r\n".join(f"X-{i}: 1" for i in range(1000)))),
        MalformedRequest,
        "body",
    ),
    "unknown part": (body(text_part("konfig", b"{}")), InvalidInput, "konfig"),
    "unknown part, odd name": (body(text_part("a\x1b[2J", b"{}")), InvalidInput, "a\\x1b[2J"),
    "part without a name": (body(text_part("", b"{}")), InvalidInput, "body"),
    "text twice": (
        body(text_part("config", b"{}"), text_part("config", b"{}")),
        InvalidInput,
        "config",
    ),
    "file twice": (
        body(file_part("calibration", "a"), file_part("calibration", "b")),
        InvalidInput,
        "calibration",
    ),
    "text for a file": (
        body(file_part("model", "a"), text_part("calibration", b"set.npz")),
        InvalidInput,
        "calibration",
    ),
    "file without a name": (body(file_part("calibration", "", b"x")), InvalidInput, "calibration"),
    "text no UTF-8": (body(text_part("config", b"\xff\xfe")), InvalidInput, "config"),
    "encoded part": (
        body(
            part(
                'Content-Disposition: form-data; name="model"; filename="a"\r\n'
                "Content-Transfer-Encoding: base64"
            )
        ),
        UnsupportedFormat,
        "model",
    ),
    "file too large": (
        body(file_part("model", "a"), file_part("model", "b", b"x" * (MEBIBYTE + 1))),
        TooLarge,
        "model",
    ),
    "text too large": (body(text_part("config", b"x" * 1001)), TooLarge, "config"),
    "too many parts": (
        body(*[file_part("model", "a") for _ in range(LIMITS.max_parts + 1)]),
        TooLarge,
        "body",
    ),
}


@pytest.mark.parametrize("sizes", [[65_536], [7]], ids=["large chunks", "small chunks"])
@pytest.mark.parametrize("case", CASES)
def test_a_refused_body_leaves_nothing(tmp_path: Path, case: str, sizes: list[int]) -> None:
    data, error_class, location = CASES[case]
    if len(data) > 100_000 and sizes == [7]:
        sizes = [1009]
    with pytest.raises(error_class) as refused:
        receive(tmp_path, pieces(data, sizes))
    assert type(refused.value) is error_class
    assert refused.value.violations[0].location == location
    assert str(tmp_path) not in refused.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content_type", "error_class"),
    [
        ("", UnsupportedFormat),
        ("application/json", UnsupportedFormat),
        ("multipart/mixed; boundary=a-boundary", UnsupportedFormat),
        ("text/plain; boundary=a-boundary", UnsupportedFormat),
        ("multipart/form-data", MalformedRequest),
        ("multipart/form-data; boundary=", MalformedRequest),
        ("multipart/form-data; boundary=" + "x" * 257, MalformedRequest),
        ("multipart/form-data; boundary*=utf-8''a-boundary", MalformedRequest),
        ("é; " * 3, UnsupportedFormat),
        ("\u20ac", UnsupportedFormat),
    ],
)
def test_other_media_types_are_refused_unread(
    tmp_path: Path, content_type: str, error_class: type[ServiceError]
) -> None:
    def unread() -> Iterator[bytes]:
        pytest.fail("the body was read")
        yield b""

    with pytest.raises(error_class) as refused:
        receive(tmp_path, unread(), content_type=content_type)
    assert type(refused.value) is error_class
    assert refused.value.violations[0].location == "content-type"
