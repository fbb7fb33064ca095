"""`howsure keys`, the start of a service that others can reach, and clients that send a key."""

import re
from pathlib import Path

import httpx
import pytest
from howsure_command import ServedProcess, howsure
from keyed_service import keyed_service, logits_of

import howsure as client
from howsure.client.errors import HowsureError

KEY = re.compile(r"cal_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}\n")


def create(folder: Path, *arguments: str, **settings: str) -> str:
    """Return a key as the command prints it."""
    done = howsure("keys", "create", "job", *arguments, folder=folder, **settings)
    assert done.returncode == 0, done.stderr
    assert KEY.fullmatch(done.stdout), "nothing but the key"
    return done.stdout.strip()


def test_keys_from_their_making_to_their_end(tmp_path) -> None:
    key = create(tmp_path, "--tenant", "lab", "--scope", "predict", "--scope", "read")
    key_id, secret = key.split("_")[1:3]
    pepper = tmp_path / "data" / "key-pepper"
    assert pepper.stat().st_mode & 0o777 == 0o600

    listed = howsure("keys", "list", folder=tmp_path, COLUMNS="200")
    for shown in (key_id, "lab", "job", "predict read", "good"):
        assert shown in listed.stdout
    rotated = howsure("keys", "rotate", key_id, "--overlap", "0", folder=tmp_path)
    assert KEY.fullmatch(rotated.stdout)
    new_id = rotated.stdout.split("_")[1]
    revoked = howsure("keys", "revoke", new_id, folder=tmp_path)
    assert revoked.stdout == f"revoked {new_id}\n"

    listed = howsure("keys", "list", "--tenant", "lab", folder=tmp_path, COLUMNS="200")
    assert re.search(f"{key_id}.*expired", listed.stdout)
    assert re.search(f"{new_id}.*revoked", listed.stdout)
    assert key_id not in howsure("keys", "list", "--tenant", "x", folder=tmp_path).stdout
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for one in (secret, rotated.stdout.split("_")[2]):
        assert one not in listed.stdout
        assert one.encode() not in written


def test_others_are_served_without_a_key_where_that_is_said(tmp_path) -> None:
    with ServedProcess(tmp_path, host="0.0.0.0", allow_anonymous="1") as found:  # noqa: S104
        port = found.base_url.port
        answer = httpx.get(f"http://127.0.0.1:{port}/calibrations")
        assert answer.status_code == httpx.codes.OK


def test_keys_of_another_pepper_are_told_at_the_start(tmp_path) -> None:
    create(tmp_path, KEY_PEPPER="x" * 16, HOWSURE_KEY_PEPPER="a pepper of many letters")
    done = howsure("serve", "--port", "0", folder=tmp_path)
    assert done.returncode == 1
    assert "HOWSURE_KEY_PEPPER" in done.stderr
    short = howsure("serve", folder=tmp_path, HOWSURE_KEY_PEPPER="short")
    assert "HOWSURE_KEY_PEPPER" in short.stderr
    assert "short" not in short.stderr.replace("shorter", "")


@pytest.mark.parametrize("pepper", ["known-to-everybody", "CHANGE-ME-CHANGE-ME"])
def test_published_peppers_are_refused(tmp_path, pepper: str) -> None:
    """Whoever knows the pepper could try the keys of a stolen database."""
    for command in (("keys", "create", "job"), ("serve", "--port", "0")):
        done = howsure(*command, folder=tmp_path, HOWSURE_KEY_PEPPER=pepper)
        assert done.returncode == 1
        assert "HOWSURE_KEY_PEPPER" in done.stderr


def test_only_its_user_may_read_what_a_service_stores(tmp_path) -> None:
    """The first command that stores something may be another one."""
    data = tmp_path / "data"
    assert howsure("keys", "create", "job", folder=tmp_path).returncode == 0
    with ServedProcess(tmp_path, data_dir=str(data)) as found:
        refused = httpx.get(f"{found.base_url}/calibrations")
        assert refused.status_code == httpx.codes.UNAUTHORIZED
        stored = [data, *data.rglob("*")]
        modes = {path.name: path.stat().st_mode & 0o077 for path in stored}
    assert "howsure.sqlite3" in modes
    assert set(modes.values()) == {0}, modes


def test_clients_send_the_key_of_the_environment(tmp_path, monkeypatch) -> None:
    with keyed_service(tmp_path / "served") as service:
        url = "http://{}:{}".format(*service.address)
        key = service.first.text
        refused = howsure("list", "--url", url, folder=tmp_path)
        assert refused.returncode == 1
        assert "needs an API key" in refused.stderr
        (tmp_path / "set.csv").write_bytes(logits_of())
        asked = {"HOWSURE_URL": url, "HOWSURE_API_KEY": key}
        made = howsure("calibrate", "set.csv", "--name", "of-lab", folder=tmp_path, **asked)
        assert made.returncode == 0, made.stderr
        assert "of-lab" in howsure("list", folder=tmp_path, **asked).stdout

        with client.Client(url, api_key=key) as given:
            assert [found.name for found in given.calibrations()] == ["of-lab"]
        with client.Client(url, retries=0) as without, pytest.raises(HowsureError) as caught:
            without.get("of-lab")
        assert caught.value.status == httpx.codes.UNAUTHORIZED
        monkeypatch.setenv("HOWSURE_API_KEY", key)
        with client.Client(url) as found:
            assert found.get("of-lab").name == "of-lab"


def test_the_command_without_an_address_needs_no_key(tmp_path) -> None:
    """Whoever runs it can read the database; a key that is given says whose calibrations."""
    key = create(tmp_path, "--tenant", "lab")
    (tmp_path / "set.csv").write_bytes(logits_of())
    for name, settings in (("anybodys", {}), ("labs", {"HOWSURE_API_KEY": key})):
        done = howsure("calibrate", "set.csv", "--name", name, folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        listed = howsure("list", folder=tmp_path, **settings).stdout
        assert name in listed
        assert ("anybodys" in listed) == (name == "anybodys")
