"""The pepper: what digests of keys are made with, kept apart from the database."""

import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

FILE_NAME = "key-pepper"
PEPPER_BYTES = 32
_NAMING = b"howsure: the name of a pepper"


class Pepper:
    """Makes digests of secrets: nobody who has but the database can try a secret on them."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.id = self.digest(_NAMING)[:16]

    def digest(self, secret: bytes) -> str:
        """Return the digest of a secret, in hexadecimal."""
        return hmac.new(self._text, secret, hashlib.sha256).hexdigest()


def find_pepper(given: str, folder: Path) -> Pepper:
    """Return the pepper that was given, else that of the folder, else one of no key there is.

    Raises
    ------
    OSError
        If the folder's cannot be read.
    """
    if given:
        return Pepper(given.encode())
    try:
        return Pepper((folder / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return Pepper(secrets.token_bytes(PEPPER_BYTES))


def make_pepper(given: str, folder: Path) -> Pepper:
    """Return the pepper to make keys with; that of the folder is made at first use.

    Raises
    ------
    OSError
        If the folder's can be neither read nor made.
    """
    if not given and not (folder / FILE_NAME).exists():
        _make(folder / FILE_NAME)
    return find_pepper(given, folder)


def _make(path: Path) -> None:
    """Make the file whole or not at all, for its owner alone; another process may be first."""
    descriptor, made = tempfile.mkstemp(prefix=FILE_NAME, dir=path.parent)  # of mode 600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(PEPPER_BYTES).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(made, path)
        except FileExistsError:
            return
    finally:
        Path(made).unlink()
