"""`howsure keys`, `tenants` and `audit`, and clients that send a key."""

import json
import os
import re
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from howsure_command import howsure
from keyed_service import keyed_service, logits_of
from running_service import calibrate, calibrated, quick_config

import howsure as client
from howsure.client.errors import HowsureError
from service.cli.failure import CommandFailed
from service.cli.local import prepare
from service.cli.serve import require_api_key
from service.settings import Settings

KEY = re.compile(r"cal_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}\n")
WIDE = {"COLUMNS": "200"}
QUICK = ("--config", quick_config())


def run(folder: Path, line: str, *more: str, status: int = 0, **settings: str) -> str:
    """Run a command whose words hold no spaces; return what it printed."""
    done = howsure(*line.split(), *more, folder=folder, **settings)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def create(folder: Path, options: str = "", **settings: str) -> str:
    """Return a key as the command prints it."""
    printed = run(folder, f"keys create job {options}", **settings)
    assert KEY.fullmatch(printed), "nothing but the key"
    return printed.strip()


def test_commands_on_a_database_do_not_ignore_the_address_of_a_service(tmp_path) -> None:
    for line in ("keys create job", "tenants list", "audit", "db upgrade"):
        refusal = run(tmp_path, line, status=1, HOWSURE_URL="https://howsure.example")
        assert "HOWSURE_URL" in refusal
    assert not [*tmp_path.iterdir()]


def test_keys_from_their_making_to_their_end(tmp_path) -> None:
    key = create(tmp_path, "--tenant lab --scope predict --scope read")
    key_id, secret = key.split("_")[1:3]
    listed = run(tmp_path, "keys list", **WIDE)
    for cell in (key_id, "lab", "job", "predict read", "good"):
        assert cell in listed
    rotated = run(tmp_path, f"keys rotate {key_id} --overlap 0")
    assert KEY.fullmatch(rotated)
    new_id = rotated.split("_")[1]
    assert run(tmp_path, f"keys revoke {new_id}") == f"revoked {new_id}\n"

    listed = run(tmp_path, "keys list --tenant lab", **WIDE)
    assert re.search(f"{key_id}.*expired", listed)
    assert re.search(f"{new_id}.*revoked", listed)
    assert key_id not in run(tmp_path, "keys list --tenant x")
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for one in (secret, rotated.split("_")[2]):
        assert one not in listed
        assert one.encode() not in stored


def test_others_are_served_without_a_key_where_that_is_allowed(tmp_path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, host="0.0.0.0")  # noqa: S104 - refused
    prepare(settings)
    with pytest.raises(CommandFailed, match="HOWSURE_ALLOW_ANONYMOUS"):
        require_api_key(settings)
    require_api_key(settings.model_copy(update={"allow_anonymous": True}))


def test_keys_of_another_pepper_are_told_at_the_start(tmp_path) -> None:
    create(tmp_path, HOWSURE_KEY_PEPPER="a pepper of many letters")
    assert "HOWSURE_KEY_PEPPER" in run(tmp_path, "serve --port 0", status=1)
    for pepper in ("short", "known-to-everybody", "CHANGE-ME-CHANGE-ME"):
        for line in ("keys create job", "serve --port 0"):
            refusal = run(tmp_path, line, status=1, HOWSURE_KEY_PEPPER=pepper)
            assert "HOWSURE_KEY_PEPPER" in refusal
            assert not re.search(rf"\b{pepper}\b", refusal)


@pytest.mark.process
def test_clients_send_the_key_of_the_environment(tmp_path, monkeypatch) -> None:
    with keyed_service(tmp_path / "served") as service:
        url = "http://{}:{}".format(*service.address)
        key = service.first.text
        made = calibrated(service.client(key), {"name": "of-lab"}, calibration=logits_of())
        assert "API key" in run(tmp_path, f"list --url {url}", status=1)
        assert "of-lab" in run(tmp_path, "list", HOWSURE_URL=url, HOWSURE_API_KEY=key)

        with client.Client(url, retries=0) as without, pytest.raises(HowsureError) as caught:
            without.get(made["id"])
        assert caught.value.status == httpx.codes.UNAUTHORIZED
        with client.Client(url, api_key=key) as with_key:
            assert with_key.get("of-lab").id == made["id"]
        writer = {"HOWSURE_API_KEY": service.make_known("default", "write").text}
        told = run(tmp_path, "promote of-lab@1", status=1, HOWSURE_URL=url, **writer)
        assert f"made id {made['id']}" in told
        monkeypatch.setenv("HOWSURE_API_KEY", key)
        with client.Client(url) as with_key:
            assert with_key.get("of-lab").id == made["id"]


@pytest.mark.process
def test_an_operator_cancels_a_job_of_any_tenant(tmp_path) -> None:
    with keyed_service(tmp_path / "data", workers=0) as service:
        lab = service.client(service.make_known("lab").text)
        queued = {"calibration": logits_of(), "config": quick_config(name="long"), "wait": 0}
        job = calibrate(lab, **queued).json()["id"]
        listed = run(tmp_path, "tenants jobs", **WIDE)
        assert re.search(rf"lab +long +{job} +queued", listed)
        assert run(tmp_path, f"tenants cancel {job}") == f"cancelled {job}\n"
        assert lab.get(f"/calibrations/{job}").json()["status"] == "cancelled"
        assert job not in run(tmp_path, "tenants jobs", **WIDE)
        assert "there is no job" in run(tmp_path, f"tenants cancel {uuid.uuid4()}", status=1)


@pytest.mark.process
def test_the_command_without_an_address_needs_no_key(tmp_path) -> None:
    """Whoever runs it can read the database; a key tells whose calibrations it works on."""
    key = create(tmp_path, "--tenant lab")
    (tmp_path / "set.csv").write_bytes(logits_of())
    run(tmp_path, "calibrate set.csv --name labs", *QUICK, HOWSURE_API_KEY=key)
    assert "labs" in run(tmp_path, "list", HOWSURE_API_KEY=key)
    assert "labs" not in run(tmp_path, "list")
    # The key, the samples and the digests: only their user may read them.
    os.umask(0o022)
    run(tmp_path, "db backup data/backup")
    stored = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    modes = {path.name: path.stat().st_mode & 0o077 for path in stored}
    assert {"howsure.sqlite3", "key-pepper", "artifacts", "manifest.json"} <= modes.keys()
    assert set(modes.values()) == {0}, modes


def audit(folder: Path, options: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(folder, f"audit --json {options}").splitlines()]


@pytest.mark.process
def test_commands_leave_rows_in_the_audit_log(tmp_path) -> None:
    key_id = create(tmp_path, "--tenant lab").split("_")[1]
    new_id = run(tmp_path, f"keys rotate {key_id}").split("_")[1]
    run(tmp_path, f"keys revoke {key_id}")
    (tmp_path / "set.csv").write_bytes(logits_of())
    run(tmp_path, "calibrate set.csv --name [red]of[/red]", status=1)

    columns = ("tenant", "via", "action", "result")
    rows = [tuple(line[column] for column in columns) for line in reversed(audit(tmp_path))]
    created, rotated, revoked = (
        ("lab", "command", f"{verb}-key", "accepted") for verb in ("create", "rotate", "revoke")
    )
    assert rows[0] == created
    assert set(rows[1:3]) == {created, rotated}
    assert rows[3:] == [revoked, ("default", "api", "calibrate", "refused")]
    assert {line["subject"] for line in audit(tmp_path, "--tenant lab")} == {key_id, new_id}
    assert [line["code"] for line in audit(tmp_path, "--result refused")] == ["invalid-config"]
    assert len(audit(tmp_path, "--limit 2")) == 2
    revocations = f"--action revoke-key --subject {key_id} --since"
    assert len(audit(tmp_path, f"{revocations} 2000-01-01T00:00:00")) == 1
    assert audit(tmp_path, f"{revocations} 2999-01-01T00:00:00") == []

    table = run(tmp_path, "audit")
    for cell in ("lab", "create-key", key_id, "refused: invalid-config"):
        assert cell in table
