"""Keys as text: what was drawn is read again, and what was mistyped is none."""

import base64
import random
import string
import zlib

import pytest

from service.access.api_keys import new_key_text, parsed_key

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def test_a_key_is_read_as_it_was_written() -> None:
    for _ in range(200):
        drawn = new_key_text()
        assert parsed_key(drawn.written().encode()) == drawn


def test_the_form_is_the_one_that_scanners_look_for() -> None:
    prefix, key_id, secret, checksum = new_key_text().written().split("_")
    assert (prefix, len(key_id), len(secret), len(checksum)) == ("cal", 12, 43, 6)
    assert set(key_id + secret + checksum) <= set(BASE62)
    number = 0
    for digit in checksum:
        number = number * 62 + BASE62.index(digit)
    assert number == zlib.crc32(f"cal_{key_id}_{secret}".encode())


def test_secrets_are_of_256_bits_and_never_the_same() -> None:
    """Each bit is set in about half of them: at most 6 standard deviations off."""
    n = 2000
    secrets = {new_key_text().secret for _ in range(n)}
    assert len(secrets) == n
    counts = [0] * 256
    for secret in secrets:
        number = 0
        for digit in secret.decode():
            number = number * 62 + BASE62.index(digit)
        assert number < 2**256
        for bit in range(256):
            counts[bit] += number >> bit & 1
    assert all(abs(count - n / 2) < 6 * (n / 4) ** 0.5 for count in counts)


def test_one_wrong_character_is_found() -> None:
    written = new_key_text().written()
    chooser = random.Random(0)
    for place, character in enumerate(written):
        other = chooser.choice([c for c in BASE62 if c != character])
        assert parsed_key((written[:place] + other + written[place + 1 :]).encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"cal_",
        b"cal___",
        b"\xff" * 67,
        "cal_ŋ".encode(),
        b"cal_" + b"0" * 12 + b"_" + b"0" * 43 + b"_" + b"0" * 6,
        base64.b64encode(b"user:password"),
    ],
)
def test_what_is_no_key_is_none(text: bytes) -> None:
    assert parsed_key(text) is None


def test_more_around_a_key_is_none() -> None:
    written = new_key_text().written().encode()
    for text in (written + b"\n", b" " + written, written + b"0", written.upper(), written * 2):
        assert parsed_key(text) is None


def test_a_secret_shows_in_no_representation() -> None:
    drawn = new_key_text()
    assert drawn.secret.decode() not in f"{drawn!r} {drawn}"
