"""A service that cannot start says why, and never what it was trusted with."""

import os
import subprocess
import sys
import uuid

import psycopg
import pytest
import without_sandbox
from databases import libpq_url
from sqlalchemy import make_url

from service.cli.failure import CommandFailed
from service.cli.local import load_settings, prepare

SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's
DATABASE = f"postgresql+psycopg://user:{SECRET}@127.0.0.1"
TRUSTED = [("DATABASE_URL", f"postgres//user:{SECRET}@host/name")]
TRUSTED += [("DATABASE_URL", f"{DATABASE}:port/name"), ("DATABASE_URL", f"{DATABASE}:1/name")]
TRUSTED += [("DATABASE_URL", f"{DATABASE}:1/name?nonsense={SECRET}")]
TRUSTED += [("DATABASE_URL", f"mysql://user:{SECRET}@127.0.0.1/name"), ("KEY_PEPPER", SECRET[:12])]
TRUSTED += [("ARTIFACTS_URL", f"az://user:{SECRET}@container/folder")]
TRUSTED += [("ARTIFACTS_URL", f"s3://user:{SECRET}@bucket/folder")]
TRUSTED += [("ARTIFACTS_URL", f"nonsense://user:{SECRET}@bucket")]
TRUSTED += [("SCHEDULER", f"http://user:{SECRET}@host")]


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Return why a service with a setting does not start."""

    def start(name: str, value: object) -> str:
        monkeypatch.setenv("HOWSURE_DATA_DIR", str(tmp_path))
        monkeypatch.setenv(f"HOWSURE_{name}", str(value))
        with pytest.raises(CommandFailed) as failed:
            prepare(load_settings())
        assert f"HOWSURE_{name}" in str(failed.value)
        return str(failed.value)

    return start


@pytest.mark.parametrize(("name", "value"), TRUSTED, ids=range(len(TRUSTED)))
def test_no_secret_is_printed(name, value, refusal, capfd) -> None:
    # The command prints the one, and whatever is logged meanwhile.
    printed = refusal(name, value) + "".join(capfd.readouterr())
    assert SECRET[:12] not in printed


def test_an_unfit_database_is_refused(postgresql_database_url, refusal, monkeypatch) -> None:
    url, name = make_url(postgresql_database_url), f"test_{uuid.uuid4().hex}"

    def refused(other) -> str:
        return refusal("DATABASE_URL", other.render_as_string(hide_password=False))

    with psycopg.connect(libpq_url(postgresql_database_url), autocommit=True) as connection:
        ascii_only = "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        connection.execute(f"CREATE DATABASE {name} {ascii_only}")
        try:
            assert "SQL_ASCII" in refused(url.set(database=name))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    read_only = {"options": "-cdefault_transaction_read_only=on"}
    assert "read-only" in refused(url.update_query_dict(read_only))
    for change in ({"database": "nowhere"}, {"username": "nobody"}):
        assert '"{}"'.format(*change.values()) in refused(url.set(**change))
    assert "Connection refused" in refused(url.set(port=1))
    monkeypatch.setattr("service.storage.database.OLDEST_POSTGRESQL", 99)
    assert "99 or later" in refused(url)


@pytest.mark.parametrize("name", ["data", "data/artifacts"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, refusal, name) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert f"folder {file} (File exists)" in refusal("DATA_DIR", tmp_path / "data")


def command(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    variables = {f"HOWSURE_{name}": value for name, value in settings.items()}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    return subprocess.run(
        words, env=os.environ | variables, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.mark.slow
def test_a_full_disk_is_named(tmp_path) -> None:
    mounting = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"
    if command(*mounting, mount).returncode != 0:
        pytest.skip("this user may not mount anything")
    serve = f"exec {sys.executable} -m service serve"
    done = command(*mounting, f"{mount} && {serve}", DATA_DIR=str(tmp_path), PORT="0")
    assert done.returncode == 1
    sentence = " ".join(done.stderr.split())
    assert f"{tmp_path} (No space left on device)" in sentence
    assert "HOWSURE_DATA_DIR" in sentence


KERNELS = [
    ("serve", "Landlock and seccomp"),
    pytest.param("worker", "Landlock", marks=pytest.mark.slow),
    pytest.param("demo", "Landlock and seccomp", marks=pytest.mark.slow),
]


@pytest.mark.process
@pytest.mark.parametrize(("words", "missing"), KERNELS)
def test_a_kernel_without_a_sandbox_is_named(tmp_path, words, missing) -> None:
    program, folder = without_sandbox.__file__, tmp_path / "data"
    done = command(sys.executable, program, missing, words, DATA_DIR=str(folder))
    assert done.returncode == 1
    assert f"the kernel lacks {missing}, " in " ".join(done.stderr.split())
    assert "HOWSURE_ALLOW_UNSANDBOXED=true" in done.stderr
    assert not folder.exists()
