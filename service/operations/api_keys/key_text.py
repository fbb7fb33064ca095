"""Keys as text: ``cal_<id>_<secret>_<checksum>``, which scanners for leaked secrets can find."""

import re
import secrets
import string
import zlib
from dataclasses import dataclass, field

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
ID_LENGTH = 12
SECRET_BYTES = 32
SECRET_LENGTH = 43  # base62 digits of 256 bits
CHECKSUM_LENGTH = 6
_KEY = re.compile(
    rb"(cal_([0-9A-Za-z]{%d})_([0-9A-Za-z]{%d}))_([0-9A-Za-z]{%d})"
    % (ID_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH)
)


@dataclass(frozen=True)
class KeyText:
    """The two parts of a key; the secret shows in no representation."""

    id: str
    secret: bytes = field(repr=False)

    def written(self) -> str:
        """Return the key as its owner sends it."""
        begin = b"cal_%b_%b" % (self.id.encode(), self.secret)
        return (begin + b"_" + _checksum(begin)).decode()


def new_key_text() -> KeyText:
    """Draw a key."""
    key_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))
    number = int.from_bytes(secrets.token_bytes(SECRET_BYTES), "big")
    return KeyText(key_id, _base62(number, SECRET_LENGTH))


def parsed_key(text: bytes) -> KeyText | None:
    """Return the parts of what was sent, or None if no key is written so."""
    found = _KEY.fullmatch(text)
    if found is None or _checksum(found[1]) != found[4]:
        return None
    return KeyText(found[2].decode(), found[3])


def _checksum(begin: bytes) -> bytes:
    """Return what finds a mistyped key; it is no secret, so it may be compared in any way."""
    return _base62(zlib.crc32(begin), CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> bytes:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits)).encode()
