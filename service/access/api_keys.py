"""API keys (text, digests, creation, rotation, revocation) and limits of tenants."""

import hashlib
import hmac
import os
import re
import secrets
import string
import tempfile
import uuid
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from sqlalchemy.orm import Session

from howsure.limits import NAME_PATTERN
from models import ApiKey
from service.access.audit_log import AuditEvent
from service.access.rate_limits import UNLIMITED, TenantLimiter, TenantLimits
from service.errors import Conflict, InvalidInput, shown
from service.storage import api_keys as key_rows
from service.storage import tenants as tenant_rows
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS, tenant_named

# Key of the caller in an ASGI scope.
CALLER = "howsure.caller"

PREDICT = "predict"
READ = "read"
WRITE = "write"
ADMIN = "admin"
SCOPES = {
    PREDICT: "ask for predictions",
    READ: "see calibrations, reports, bins and exports",
    WRITE: "make, change and delete them",
    ADMIN: "see what the service tells of all tenants, metrics and models, and the audit table",
}


@dataclass(slots=True, eq=False)
class Caller:
    """The sender of a request; ``key_id`` is None on a service without keys.

    Each request sets ``is_used``; recording the use resets it. ``meter`` is shared by all keys of
    the tenant.
    """

    tenant_id: uuid.UUID
    key_id: str | None
    scopes: frozenset[str]
    is_used: bool = False
    meter: TenantLimiter = UNLIMITED


def anybody(tenant_id: uuid.UUID) -> Caller:
    """Return the caller on a service without keys."""
    return Caller(tenant_id, None, frozenset(SCOPES))


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
    """The two parts of a key; its representation hides the secret."""

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
    """Return the parts of a key that was sent; None if it is malformed."""
    found = _KEY.fullmatch(text)
    if found is None or _checksum(found[1]) != found[4]:
        return None
    return KeyText(found[2].decode(), found[3])


def _checksum(begin: bytes) -> bytes:
    """Return the checksum that detects mistyped keys; it is not secret."""
    return _base62(zlib.crc32(begin), CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> bytes:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits)).encode()


FILE_NAME = "key-pepper"
PEPPER_BYTES = 32
_NAMING = b"howsure: the name of a pepper"


class Pepper:
    """Calculates digests of secrets. Without it, nobody can test a secret against the database."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.id = self.digest(_NAMING)[:16]

    def digest(self, secret: bytes) -> str:
        """Return the digest of a secret, in hexadecimal."""
        return hmac.new(self._text, secret, hashlib.sha256).hexdigest()


def find_pepper(given: str, folder: Path) -> Pepper:
    """Return the given pepper, else that of the folder, else a random one that matches no key.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    if given:
        return Pepper(given.encode())
    try:
        return Pepper((folder / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return Pepper(secrets.token_bytes(PEPPER_BYTES))


def make_pepper(given: str, folder: Path) -> Pepper:
    """Return the pepper for new keys; the file in the folder is created at first use.

    Raises
    ------
    OSError
        If the file can be neither read nor created.
    """
    if not given and not (folder / FILE_NAME).exists():
        _make(folder / FILE_NAME)
    return find_pepper(given, folder)


def _make(path: Path) -> None:
    """Create the file atomically, readable by its owner only; another process may be first."""
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


MOST_DAYS = 3650


@dataclass(frozen=True)
class MadeKey:
    """A new key as shown to its owner, once."""

    id: str
    text: str = field(repr=False)
    expires_at: datetime


def create_key(
    database: Database,
    pepper: Pepper,
    *,
    name: str,
    tenant: str,
    scopes: Collection[str],
    days: int,
) -> MadeKey:
    """Create a key for a tenant, and the tenant if it does not exist.

    Raises
    ------
    InvalidInput
        If a name, a scope or the number of days is invalid.
    """
    _check(name, tenant, scopes, days)
    with database.session(ALL_TENANTS, invalidates_cache=False) as session:
        tenant_id = tenant_named(session, tenant)
        new = ApiKey(tenant_id=tenant_id, name=name, scopes=sorted(set(scopes)), lifetime_days=days)
        return _kept(session, new, pepper)


def rotate_key(database: Database, pepper: Pepper, key_id: str, *, overlap: timedelta) -> MadeKey:
    """Create a key with the scopes and lifetime of another, which expires after the overlap.

    Raises
    ------
    NotFound, Conflict
        If there is no such key, or it is revoked or expired.
    """
    with database.session(ALL_TENANTS, invalidates_cache=False) as session:
        old = key_rows.find_key(session, key_id)
        if not key_rows.is_live(session, old):
            raise Conflict(f"the key {key_id} is revoked or expired: create another")
        same = ("tenant_id", "name", "scopes", "lifetime_days")
        new = ApiKey(**{name: getattr(old, name) for name in same})
        key_rows.expire_after(session, old, overlap)
        _act("rotate-key", old.tenant_id).accepted(session, old.id)
        return _kept(session, new, pepper)


def revoke_key(database: Database, key_id: str) -> None:
    """Revoke a key.

    Raises
    ------
    NotFound
        If there is no such key.
    """
    with database.session(ALL_TENANTS, invalidates_cache=False) as session:
        row = key_rows.find_key(session, key_id)
        key_rows.revoke_key(session, row)
        _act("revoke-key", row.tenant_id).accepted(session, key_id)


def list_keys(database: Database, tenant: str | None) -> list[key_rows.ListedKey]:
    """Return the keys of a tenant, or of all."""
    with database.reading(ALL_TENANTS) as session:
        return key_rows.listed_keys(session, tenant)


def _act(action: str, tenant_id: UUID) -> AuditEvent:
    """Return the audit event of a command, which needs no key but access to the database."""
    return AuditEvent(tenant_id, action, via="command")


def _kept(session: Session, new: ApiKey, pepper: Pepper) -> MadeKey:
    """Draw the text of a new key and store the key."""
    drawn = new_key_text()
    new.id, new.digest, new.pepper_id = drawn.id, pepper.digest(drawn.secret), pepper.id
    row = key_rows.add_key(session, new)
    _act("create-key", row.tenant_id).accepted(session, row.id)
    return MadeKey(row.id, drawn.written(), row.expires_at)


def _check(name: str, tenant: str, scopes: Collection[str], days: int) -> None:
    for what, found in (("NAME", name), ("--tenant", tenant)):
        if not re.fullmatch(NAME_PATTERN, found):
            raise InvalidInput(
                f"{what}: expected up to 100 letters, digits, '.', '_' and '-', got {shown(found)}"
            )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        got = shown(unknown[0]) if unknown else "none"
        raise InvalidInput(f"--scope: expected {', '.join(SCOPES)}, got {got}")
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"--days: expected 1 to {MOST_DAYS}, got {days}")


# The maximum of an integer column in all supported databases.
MOST = 2**63 - 1


def list_tenants(database: Database, defaults: TenantLimits) -> list[tuple[str, TenantLimits]]:
    """Return the name and limits of every tenant."""
    with database.reading(ALL_TENANTS) as session:
        found = tenant_rows.tenants_with_limits(session)
    return [(name, defaults.but(own)) for _, name, own in found]


def limit_tenant(database: Database, name: str, changes: Mapping[str, int | None]) -> None:
    """Change limits of a tenant: None means the setting, 0 means unlimited.

    Raises
    ------
    InvalidInput
        If there is no change, or a number is out of range.
    NotFound
        If there is no such tenant.
    """
    if not changes:
        raise InvalidInput("expected at least one limit to change; see --help")
    for value in changes.values():
        if value is not None and not 0 <= value <= MOST:
            raise InvalidInput(f"expected a whole number from 0 to {MOST}, got {value}")
    with database.session(ALL_TENANTS, invalidates_cache=False) as session:
        tenant_rows.set_limits(session, name, changes)
