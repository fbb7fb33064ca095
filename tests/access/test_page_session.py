"""Which cookies are sessions of pages."""

from dataclasses import replace

import pytest

from service.access.page_session import (
    ABSOLUTE_SECONDS,
    IDLE_SECONDS,
    PageSession,
    new_session,
    read_session,
    session_cookie,
    without_foreign_cookies,
)

SECRET = b"secret"


@pytest.fixture
def now() -> PageSession:
    return new_session("0" * 12)


def read(value: str, *, secure: bool = False) -> PageSession | None:
    return read_session({session_cookie(secure=secure): value}, lambda _: SECRET, secure=secure)


@pytest.mark.parametrize("secure", [False, True])
def test_a_session_is_read_as_it_was_written(now, secure) -> None:
    written = now.written(SECRET)
    assert read(written, secure=secure) == now
    # A cookie of plain HTTP is none over TLS.
    cookies = {session_cookie(secure=secure): written}
    assert read_session(cookies, lambda _: SECRET, secure=not secure) is None


def test_a_session_ends_when_it_is_old_or_idle(now) -> None:
    for name, seconds in (("since", ABSOLUTE_SECONDS), ("seen", IDLE_SECONDS)):
        for ago, ends in ((seconds - 60, False), (seconds, True)):
            session = replace(now, **{name: getattr(now, name) - ago})
            assert (read(session.written(SECRET)) is None) == ends


def test_a_cookie_that_was_not_signed_here_is_none(now) -> None:
    written = now.written(SECRET)
    assert read(now.written(b"another secret")) is None
    cookies = {session_cookie(secure=False): now.written(SECRET)}
    assert read_session(cookies, lambda _: None, secure=False) is None
    assert read("") is read(written + "x") is None
    for place, letter in enumerate(written):
        changed = written[:place] + ("1" if letter != "1" else "2") + written[place + 1 :]
        assert read(changed) is None


COOKIES = [
    (b"a=1; howsure-session=x.y; b=2", b"howsure-session=x.y"),
    (b"__Host-howsure-session=x;howsure-session=y", b"__Host-howsure-session=x; howsure-session=y"),
    (b"__Host-howsure-session=x", b"__Host-howsure-session=x"),
    *((b'howsure-session="' + rb"\\" * 30000 + b'"', None), (b'howsure-session="x"', None)),
    *((b"howsure-session=", None), (b"xhowsure-session=x", None), (b";" * 60000, None)),
]


def test_only_cookies_of_the_service_are_left() -> None:
    around = [(b"host", b"localhost"), (b"accept", b"*/*")]
    for sent, left in COOKIES:
        expected = [*around, (b"cookie", left)] if left else around
        assert without_foreign_cookies([*around, (b"cookie", sent)]) == expected, sent[:50]
