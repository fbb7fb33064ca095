"""API keys are checked in memory, as the database had them a moment ago."""

import asyncio
import stat
import uuid
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
    revoke_key,
    rotate_key,
)
from service.access.authenticator import MOST_BYTES, Authenticator
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, Overloaded, Unauthenticated
from service.storage.tenants import ALL_TENANTS

ALL = tuple(SCOPES)


def door(database, folder, *, may_be_open=True, given="", tenant_id=None, **options):
    made = Authenticator(
        database,
        tenant_id=tenant_id or tenant_of(database),
        pepper=partial(find_pepper, given, folder),
        may_be_open=may_be_open,
        **options,
    )
    made.look()
    return made


def make(database, folder, *scopes, tenant="default", given="", days=365):
    pepper = make_pepper(given, folder)
    return create_key(
        database, pepper, name="a-job", tenant=tenant, scopes=scopes or ALL, days=days
    )


def sent(made, scheme="Bearer"):
    return [f"{scheme} {made.text}".encode()]


def let_pass(database, made, **columns):
    """Change what the database says of a key."""
    with database.session(ALL_TENANTS) as session:
        session.execute(
            sa.update(models.ApiKey).where(models.ApiKey.id == made.id).values(**columns)
        )


def test_keys_are_required_from_the_first_on_also_after_the_last_is_revoked(database, tmp_path):
    with pytest.raises(Unauthenticated):  # on a public address from the beginning
        door(database, tmp_path, may_be_open=False).admit([], ["read"])
    keeper = door(database, tmp_path)
    assert keeper.ring.is_open
    for given in ([], [b"Bearer anything"], [b"Basic dXNlcjpwYXNz"]):
        assert keeper.admit(given, ["write"]).tenant_id == tenant_of(database)
    assert list(tmp_path.glob("key-pepper*")) == []
    made = make(database, tmp_path)
    keeper.look()
    assert keeper.admit(sent(made), ["read"]).key_id == made.id
    with pytest.raises(Unauthenticated, match="needs an API key"):
        keeper.admit([], ["read"])
    revoke_key(database, made.id)
    keeper.look()
    for given in ([], sent(made)):
        with pytest.raises(Unauthenticated):
            keeper.admit(given, ["read"])


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
    whole = made.text.encode()
    mixed = f"cal_{made.id}_{other.text.split('_')[2]}"
    refused = [
        [],
        [b""],
        [whole],
        [b"Basic " + whole],
        [b"Bearer"],
        [b"Bearer "],
        [b"Bearer " + whole[:-1]],
        [b"Bearer " + whole + b"\xc3\xa9"],
        ["Bearer cal_é".encode()],
        [b"Bearer " + whole + b" " * MOST_BYTES],
        [b"Bearer " + b"0" * 10_000],
        [b"Bearer " + mixed.encode() + b"_000000"],
        sent(made) * 2,
        [*sent(made), b""],
    ]
    for given in refused:
        with pytest.raises(Unauthenticated) as caught:
            keeper.admit(given, ["read"])
        assert made.text.split("_")[2] not in caught.value.message
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
    [row] = [key.row for key in list_keys(database, None) if key.row.id == expired.id]
    let_pass(database, expired, expires_at=row.created_at)
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
            options = {"name": "a-job", "tenant": "default", "scopes": ["read"], "days": 1}
            with pytest.raises(InvalidInput, match="expected"):
                create_key(database, make_pepper("", tmp_path), **options | {field: value})
    assert list_keys(database, None) == []


def test_no_secret_is_in_the_database(database, tmp_path):
    made = make(database, tmp_path)
    secret = made.text.split("_")[2]
    with database.reading(ALL_TENANTS) as session:
        rows = session.execute(sa.select(models.ApiKey.__table__)).all()
    assert len(rows) == 1
    assert secret not in f"{rows} {made!r}"


def test_the_pepper_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: make_pepper("", tmp_path).id, range(8)))
    assert len(set(made)) == 1
    [file] = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_with_another_pepper_no_key_is_known(database, tmp_path):
    """It is not in the database: who has only that can try no secret on it."""
    made = make(database, tmp_path, given="the first of the peppers")
    for given in ("", "another of the peppers"):
        with pytest.raises(Unauthenticated):
            door(database, tmp_path, given=given).admit(sent(made), ["read"])
    door(database, tmp_path, given="the first of the peppers").admit(sent(made), ["read"])


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
    monkeypatch.setattr(module, "STALE_SECONDS", 0.3)
    made, severed = make(database, tmp_path), Away(database)
    pepper = partial(find_pepper, "", tmp_path)
    unread = Authenticator(database, tenant_id=uuid.uuid4(), pepper=pepper, may_be_open=True)
    with pytest.raises(Overloaded):
        unread.admit([], ["read"])

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
        assert keeper._look_and_note()
        return list_keys(database, None)[0].row.last_used_at

    first = stored_use()
    assert first is not None
    assert stored_use() == first
    keeper._noted[made.id] -= module.NOTED_EVERY_SECONDS
    assert stored_use() > first
