"""`howsure tenants`: what each tenant may use."""

from pathlib import Path

import pytest
from howsure_command import howsure

WIDE = {"COLUMNS": "200"}


def limit(folder: Path, name: str, **limits: str):
    options = [word for what, value in limits.items() for word in (f"--{what}", value)]
    return howsure("tenants", "limit", name, *options, folder=folder)


def row_of(folder: Path, name: str) -> list[str]:
    listed = howsure("tenants", "list", folder=folder, HOWSURE_MAX_TENANT_JOBS="7", **WIDE)
    [row] = [line for line in listed.stdout.splitlines() if f" {name} " in line]
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_limits_of_a_tenant_are_set_and_set_back(tmp_path) -> None:
    assert howsure("keys", "create", "job", "--tenant", "lab", folder=tmp_path).returncode == 0
    settings = ["1,000", "1,000,000", "107,374,182,400", "7"]
    assert row_of(tmp_path, "lab") == ["lab", *settings]
    done = limit(tmp_path, "lab", **{"requests-per-second": "50", "stored-bytes": "none"})
    assert (done.returncode, done.stdout) == (0, "changed lab\n")
    assert limit(tmp_path, "lab", jobs="3").returncode == 0
    assert row_of(tmp_path, "lab") == ["lab", "50", "1,000,000", "none", "3"]
    assert row_of(tmp_path, "default") == ["default", *settings]
    back = dict.fromkeys(("requests-per-second", "stored-bytes", "jobs"), "default")
    assert limit(tmp_path, "lab", **back).returncode == 0
    assert row_of(tmp_path, "lab") == ["lab", *settings]


@pytest.mark.parametrize("given", ["-1", "1.5", "many", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_limits_are_whole_numbers(tmp_path, given) -> None:
    assert limit(tmp_path, "default", jobs=given).returncode == 2
