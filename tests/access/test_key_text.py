"""The text of keys: written, read again, and refused when mistyped."""

import base64
import random
import string
import zlib

from service.access.api_keys import new_key_text, parsed_key

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def test_a_key_is_read_as_it_was_written_and_no_secret_is_drawn_twice() -> None:
    keys = [new_key_text() for _ in range(200)]
    assert [parsed_key(key.written().encode()) for key in keys] == keys
    assert len({key.secret for key in keys}) == len(keys)
    assert keys[0].secret.decode() not in f"{keys[0]!r} {keys[0]}"


def test_a_key_has_the_form_that_secret_scanners_look_for() -> None:
    prefix, key_id, secret, checksum = new_key_text().written().split("_")
    assert (prefix, len(key_id), len(secret), len(checksum)) == ("cal", 12, 43, 6)
    assert set(key_id + secret + checksum) <= set(BASE62)
    number = 0
    for digit in checksum:
        number = number * 62 + BASE62.index(digit)
    assert number == zlib.crc32(f"cal_{key_id}_{secret}".encode())


def test_a_key_with_one_wrong_character_is_refused() -> None:
    written = new_key_text().written()
    chooser = random.Random(0)
    for place, character in enumerate(written):
        other = chooser.choice([c for c in BASE62 if c != character])
        assert parsed_key((written[:place] + other + written[place + 1 :]).encode()) is None


def test_other_text_is_no_key() -> None:
    written = new_key_text().written().encode()
    for text in (
        *(b"", b"cal_", b"cal___", b"\xff" * 67, "cal_ŋ".encode()),
        b"cal_" + b"0" * 12 + b"_" + b"0" * 43 + b"_" + b"0" * 6,
        base64.b64encode(b"user:password"),
        *(written + b"\n", b" " + written, written + b"0", written.upper(), written * 2),
    ):
        assert parsed_key(text) is None, text
