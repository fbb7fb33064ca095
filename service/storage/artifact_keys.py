"""Keys of artifacts: the server's own, each below the calibration that the file is of."""

import re
from uuid import UUID

ROOT = "calibrations"
MAX_KEY_CHARACTERS = 500
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_KEY = re.compile(rf"{ROOT}/{_UUID}(?:/{_PART})+")
_PREFIX = re.compile(rf"{ROOT}(?:/{_UUID}(?:/{_PART})*)?")
# What a store in a folder writes to until all of a file is there: no key has this sign.
_UNFINISHED = re.compile(rf"({_KEY.pattern})#[0-9]+")


def checked_key(key: str) -> str:
    """Return a key, if it is one.

    Raises
    ------
    ValueError
        If it is none that the server made.
    """
    if not is_key(key):
        raise ValueError(f"not an artifact key: {key!r}")
    return key


def checked_prefix(prefix: str) -> str:
    """Return what keys begin with, whole parts of them.

    Raises
    ------
    ValueError
        If no key can.
    """
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"not a prefix of artifact keys: {prefix!r}")
    return prefix


def is_key(key: str) -> bool:
    """Tell whether a file of this name is one of ours."""
    return _KEY.fullmatch(key) is not None and len(key) <= MAX_KEY_CHARACTERS


def is_unfinished(name: str) -> bool:
    """Tell whether a file of this name in a folder is one of ours that is not all there."""
    return _UNFINISHED.fullmatch(name) is not None


def calibration_of(key: str) -> UUID:
    """Return the calibration that a key, or an unfinished one, is below."""
    return UUID(key.split("/")[1])


def keys_of(calibration_id: UUID) -> str:
    """Return the prefix of a calibration's keys."""
    return f"{ROOT}/{calibration_id}"
