"""API keys are checked in memory, as the database had them a moment ago."""

import asyncio
import stat
import string
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa
from runner_children import wait_until
from stored_rows import tenant_of

import models
from service.access import authenticator as module
from service.access.api_keys import (
    SCOPES,
    create_key,
    find_pepper,
    list_keys,
    make_pepper,
    new_key_text,
    revoke_key,
    rotate_key,
)
from service.access.authenticator import MOST_BYTES, Authenticator
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, Overloaded, Unauthenticated
from service.storage.tenants import ALL_TENANTS

ALL = tuple(SCOPES)


def door(database, folder, *, given="", **options):
    options = {"tenant_id": tenant_of(database), "may_be_open": True} | options
    made = Authenticator(database, pepper=partial(find_pepper, given, folder), **options)
    made.look()
    return made


def make(database, folder, *scopes, given="", **options):
    options = {"name": "a-job", "tenant": "default", "scopes": scopes or ALL, "days": 365} | options
    return create_key(database, make_pepper(given, folder), **options)


def sent(made, scheme="Bearer"):
    return [f"{scheme} {made.text}".encode()]


def is_refused(keeper, headers, scope="read"):
    try:
        keeper.admit(headers, [scope])
    except Unauthenticated:
        return True
    return False


def let_pass(database, made, **columns):
    """Change what the database says of a key."""
    row = sa.update(models.ApiKey).where(models.ApiKey.id == made.id)
    with database.session(ALL_TENANTS) as session:
        session.execute(row.values(**columns))


def test_keys_are_required_from_the_first_on_also_after_the_last_is_revoked(database, tmp_path):
    # On a public address from the beginning.
    assert is_refused(door(database, tmp_path, may_be_open=False), [])
    keeper = door(database, tmp_path)
    assert keeper.ring.is_open
    for headers in ([], [b"Bearer anything"], [b"Basic dXNlcjpwYXNz"]):
        assert keeper.admit(headers, ["write"]).tenant_id == tenant_of(database)
    assert list(tmp_path.glob("key-pepper*")) == []
    made = make(database, tmp_path)
    keeper.look()
    assert keeper.admit(sent(made), ["read"]).key_id == made.id
    assert is_refused(keeper, [])
    revoke_key(database, made.id)
    keeper.look()
    assert is_refused(keeper, [])
    assert is_refused(keeper, sent(made))


def test_a_keyless_service_still_checks_a_key_that_is_sent(database, tmp_path):
    made = make(database, tmp_path, "read", tenant="second")
    keeper = door(database, tmp_path, keyless=True)
    assert keeper.admit([], ["admin"]).tenant_id == tenant_of(database)
    assert keeper.admit(sent(made), ["read"]).tenant_id != tenant_of(database)
    with pytest.raises(Forbidden, match="`write`"):
        keeper.admit(sent(made), ["write"])
    with pytest.raises(Forbidden):
        keeper.admit(sent(made), [])


def test_anything_but_the_key_is_unauthenticated(database, tmp_path):
    made, other = make(database, tmp_path), make(database, tmp_path)
    keeper = door(database, tmp_path)
    whole, secret = made.text.encode(), made.text.split("_")[2].encode()
    mixed = f"cal_{made.id}_{other.text.split('_')[2]}_000000"
    values = [b"", whole, b"Basic " + whole, b"Bearer", b"Bearer "]
    keys = [whole[:-1], whole + b"\xc3\xa9", whole + b" " * MOST_BYTES, whole.upper(), whole * 2]
    keys += [b"\xff" * 67, "cal_ŋ".encode(), b"cal___", b"0" * 10_000, mixed.encode()]
    # With one wrong character, at each place of the secret.
    keys += [
        whole[:i] + bytes([c ^ 3]) + whole[i + 1 :] for i, c in enumerate(whole) if c in secret
    ]
    values += [b"Bearer " + key for key in keys]
    for headers in ([], *([value] for value in values), sent(made) * 2, [*sent(made), b""]):
        with pytest.raises(Unauthenticated) as refused:
            keeper.admit(headers, ["read"])
        assert secret.decode() not in refused.value.message
    for scheme in ("bearer", "BEARER"):
        assert keeper.admit(sent(made, scheme), ["read"]).key_id == made.id


def test_revoked_expired_and_wrong_keys_are_refused_in_the_same_words(database, tmp_path):
    """An unknown id and a wrong secret too, of a key with this form and checksum."""
    revoked, expired, wrong, good = (make(database, tmp_path) for _ in range(4))
    keeper = door(database, tmp_path)
    first = keeper.ring
    keeper.look()
    assert keeper.ring is first, "who was let in by the same keys need not be looked at again"
    revoke_key(database, revoked.id)
    let_pass(database, wrong, digest="0" * 64)
    let_pass(database, expired, expires_at=models.ApiKey.created_at)
    keeper.look()
    assert keeper.ring is not first
    sentences = set()
    for made in (revoked, expired, wrong):
        with pytest.raises(Unauthenticated) as refused:
            keeper.admit(sent(made), ["read"])
        sentences.add(refused.value.message)
    assert len(sentences) == 1
    assert keeper.admit(sent(good), ["read"]).key_id == good.id


def test_after_a_rotation_both_keys_work_for_a_while(database, tmp_path):
    old = make(database, tmp_path, "predict", tenant="second", days=30)
    pepper = make_pepper("", tmp_path)
    new = rotate_key(database, pepper, old.id, overlap=timedelta(hours=1))
    keeper = door(database, tmp_path)
    callers = [keeper.admit(sent(made), ["predict"]) for made in (old, new)]
    assert callers[0].tenant_id == callers[1].tenant_id
    rows = {key.row.id: key.row for key in list_keys(database, "second")}
    assert rows[old.id].expires_at - rows[new.id].created_at <= timedelta(hours=1)
    assert rows[new.id].expires_at - rows[new.id].created_at == timedelta(days=30)
    # A second rotation of what is short-lived by now makes one that lives as long as the first did.
    again = rotate_key(database, pepper, old.id, overlap=timedelta(0))
    assert again.expires_at - rows[new.id].expires_at < timedelta(minutes=5)
    keeper.look()
    with pytest.raises(Unauthenticated):
        keeper.admit(sent(old), ["predict"])
    for ended in (old.id, "no such key"):
        with pytest.raises((Conflict, NotFound)):
            rotate_key(database, pepper, ended, overlap=timedelta(0))
    with pytest.raises(NotFound):
        revoke_key(database, "no such key")


WRONG = {"name": ["", "a/b", "x" * 101], "tenant": ["", "a\nb"], "days": [0, 3651]}
WRONG["scopes"] = [[], ["everything"]]


def test_invalid_keys_cannot_be_made(database, tmp_path):
    for field, values in WRONG.items():
        for value in values:
            with pytest.raises(InvalidInput):
                make(database, tmp_path, **{field: value})
    assert list_keys(database, None) == []


def test_a_key_has_the_form_that_secret_scanners_look_for_and_no_secret_is_drawn_twice():
    keys = [new_key_text() for _ in range(200)]
    assert len({key.secret for key in keys}) == len(keys)
    prefix, key_id, secret, checksum = keys[0].written().split("_")
    assert (prefix, len(key_id), len(secret), len(checksum)) == ("cal", 12, 43, 6)
    base62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
    assert set(key_id + secret + checksum) <= set(base62)
    number = 0
    for digit in checksum:
        number = number * 62 + base62.index(digit)
    assert number == zlib.crc32(f"cal_{key_id}_{secret}".encode())
    assert secret not in f"{keys[0]!r} {keys[0]}"


def test_the_pepper_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: make_pepper("", tmp_path).id, range(8)))
    assert len(set(made)) == 1
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_with_another_pepper_no_key_is_known(database, tmp_path):
    """It is not in the database: who has only that can try no secret on it."""
    first = "the first of the peppers"
    made = make(database, tmp_path, given=first)
    for given in ("", "another of the peppers", first):
        keeper = door(database, tmp_path, given=given)
        assert is_refused(keeper, sent(made)) == (given != first)


class Away:
    """A database that can be taken away."""

    is_away = False

    def __init__(self, database):
        self._here = database

    def __getattr__(self, name):
        if self.is_away:
            raise Overloaded("The database does not answer.")
        return getattr(self._here, name)


def test_keys_outlive_their_database_for_a_while(database, tmp_path, monkeypatch):
    """Then nobody is let in, until it is back; nor before the first read."""
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.01)
    monkeypatch.setattr(module, "STALE_SECONDS", 2.0)
    made, severed = make(database, tmp_path), Away(database)
    options = {"tenant_id": uuid.uuid4(), "pepper": partial(find_pepper, "", tmp_path)}
    with pytest.raises(Overloaded):
        Authenticator(database, **options, may_be_open=True).admit([], ["read"])

    async def scene() -> None:
        keeper = door(severed, tmp_path, tenant_id=tenant_of(database))
        keeper.start()
        severed.is_away = True
        first = keeper.ring
        assert keeper.admit(sent(made), ["read"]).key_id == made.id
        await asyncio.to_thread(wait_until, lambda: keeper.ring is not first)
        with pytest.raises(Overloaded):
            keeper.admit(sent(made), ["read"])
        refusing, severed.is_away = keeper.ring, False
        await asyncio.to_thread(wait_until, lambda: keeper.ring is not refusing)
        assert keeper.admit(sent(made), ["read"]).key_id == made.id
        await keeper.close()

    asyncio.run(scene())


def test_the_use_of_a_key_is_stored_every_ten_minutes(database, tmp_path):
    """Not for each request: ten minutes apart."""
    made = make(database, tmp_path)
    keeper = door(database, tmp_path)

    def stored_use():
        keeper.admit(sent(made), ["read"])
        keeper._look_and_note()
        return list_keys(database, None)[0].row.last_used_at

    first = stored_use()
    assert first is not None
    assert stored_use() == first
    keeper._noted[made.id] -= module.NOTED_EVERY_SECONDS
    assert stored_use() > first
