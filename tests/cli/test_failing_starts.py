"""A service that cannot start says why, and never what it was trusted with."""

import pytest

from service.cli.failure import CommandFailed
from service.cli.local import load_settings, prepare

SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's
DATABASE = f"postgresql+psycopg://user:{SECRET}@127.0.0.1"
TRUSTED = [
    {"DATABASE_URL": f"postgres//user:{SECRET}@host/name"},
    {"DATABASE_URL": f"{DATABASE}:port/name"},
    {"DATABASE_URL": f"{DATABASE}:1/name"},
    {"DATABASE_URL": f"{DATABASE}:1/name?nonsense={SECRET}"},
    {"DATABASE_URL": f"mysql://user:{SECRET}@127.0.0.1/name"},
    {"KEY_PEPPER": SECRET[:12]},
    {"ARTIFACTS_URL": f"az://user:{SECRET}@container/folder"},
    {"ARTIFACTS_URL": f"s3://user:{SECRET}@bucket/folder"},
    {"ARTIFACTS_URL": f"nonsense://user:{SECRET}@bucket"},
    {"SCHEDULER": f"http://user:{SECRET}@host"},
]


@pytest.mark.parametrize("given", TRUSTED, ids=range(len(TRUSTED)))
def test_no_secret_is_printed(given, tmp_path, monkeypatch, capfd) -> None:
    [name] = [f"HOWSURE_{setting}" for setting in given]
    monkeypatch.setenv(name, *given.values())
    monkeypatch.setenv("HOWSURE_DATA_DIR", str(tmp_path))
    with pytest.raises(CommandFailed) as failed:
        prepare(load_settings())
    # The command prints the one, and whatever is logged meanwhile.
    told = str(failed.value) + "".join(capfd.readouterr())
    assert name in told
    assert SECRET not in told
    assert SECRET[:12] not in told
