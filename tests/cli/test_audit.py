"""`howsure audit`: what commands and requests have changed, from the database."""

import json
from pathlib import Path
from typing import Any

from howsure_command import howsure
from keyed_service import logits_of


def lines(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = howsure("audit", "--json", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_commands_leave_rows_and_can_be_filtered(tmp_path) -> None:
    assert lines(tmp_path) == []
    made = howsure("keys", "create", "job", "--tenant", "lab", folder=tmp_path).stdout
    key_id = made.split("_")[1]
    new_id = howsure("keys", "rotate", key_id, folder=tmp_path).stdout.split("_")[1]
    howsure("keys", "revoke", key_id, folder=tmp_path)
    howsure("keys", "revoke", "nobody", folder=tmp_path)
    (tmp_path / "set.csv").write_bytes(logits_of())
    howsure("calibrate", "set.csv", "--name", "[red]of[/red]", folder=tmp_path)
    howsure("calibrate", "set.csv", "--name", "digits", folder=tmp_path)

    found = lines(tmp_path)
    keys = ("tenant", "via", "action", "result")
    said = [tuple(line[key] for key in keys) for line in reversed(found)]
    of_lab = [("lab", "command", action, "accepted") for action in ("create-key", "rotate-key")]
    assert said[0] == of_lab[0]
    assert set(said[1:3]) == set(of_lab)
    assert said[3] == ("lab", "command", "revoke-key", "accepted")
    assert said[4:] == [
        ("default", "api", "calibrate", "refused"),
        ("default", "api", "calibrate", "accepted"),
    ]
    assert {line["subject"] for line in lines(tmp_path, "--tenant", "lab")} == {key_id, new_id}
    assert [line["code"] for line in lines(tmp_path, "--result", "refused")] == ["invalid-config"]
    assert len(lines(tmp_path, "--limit", "2")) == 2
    assert lines(tmp_path, "--since", "2999-01-01T00:00:00") == []
    assert len(lines(tmp_path, "--action", "revoke-key", "--subject", key_id)) == 1

    table = howsure("audit", folder=tmp_path)
    for shown in ("lab", "create-key", key_id, "refused: invalid-config"):
        assert shown in table.stdout
