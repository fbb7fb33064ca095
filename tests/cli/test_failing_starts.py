"""A service that cannot start says why, and never what it was trusted with."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product

import pytest
import without_sandbox
from databases import PostgresServer
from sqlalchemy import URL, create_engine, make_url, text

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


@pytest.mark.parametrize("settings", TRUSTED, ids=range(len(TRUSTED)))
def test_no_secret_is_printed(settings, tmp_path, monkeypatch, capfd) -> None:
    [name] = [f"HOWSURE_{setting}" for setting in settings]
    monkeypatch.setenv(name, *settings.values())
    monkeypatch.setenv("HOWSURE_DATA_DIR", str(tmp_path))
    with pytest.raises(CommandFailed) as failed:
        prepare(load_settings())
    # The command prints the one, and whatever is logged meanwhile.
    told = str(failed.value) + "".join(capfd.readouterr())
    assert name in told
    assert SECRET not in told
    assert SECRET[:12] not in told


def refusal(folder, monkeypatch, **settings: object) -> str:
    """Return why a service with these settings does not start."""
    monkeypatch.setenv("HOWSURE_DATA_DIR", str(folder))
    for name, value in settings.items():
        monkeypatch.setenv(f"HOWSURE_{name}", str(value))
    with pytest.raises(CommandFailed) as failed:
        prepare(load_settings())
    return str(failed.value)


@contextmanager
def database_with(server: str, options: str) -> Iterator[URL]:
    """Make a database with options of CREATE DATABASE; yield its address."""
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with ExitStack() as ending:
        ending.callback(engine.dispose)
        connection = ending.enter_context(engine.connect())
        connection.execute(text(f'CREATE DATABASE "{name}" {options}'))
        drop = text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        ending.callback(connection.execute, drop)
        yield make_url(server).set(database=name)


ASCII = "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
READ_ONLY = {"options": "-cdefault_transaction_read_only=on"}


@pytest.mark.parametrize(
    ("options", "query", "oldest", "part"),
    [
        (ASCII, {}, 0, "SQL_ASCII"),
        ("TEMPLATE template0", READ_ONLY, 0, "read-only"),
        ("TEMPLATE template0", {}, 99, "use 99 or later"),
    ],
)
def test_a_database_that_does_not_fit_is_refused(
    postgresql_database_url, tmp_path, monkeypatch, options, query, oldest, part
) -> None:
    if oldest:
        monkeypatch.setattr("service.storage.database.OLDEST_POSTGRESQL", oldest)
    with database_with(postgresql_database_url, options) as address:
        url = address.update_query_dict(query).render_as_string(hide_password=False)
        sentence = refusal(tmp_path, monkeypatch, DATABASE_URL=url)
    assert sentence.startswith("HOWSURE_DATABASE_URL: ")
    assert part in sentence


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"database": "nowhere"}, '"nowhere"'),
        ({"username": "nobody"}, '"nobody"'),
        ({"port": 1}, "Connection refused"),
    ],
    ids=["no such database", "no such user", "nothing listens"],
)
def test_a_database_that_cannot_be_used_is_named(
    postgresql_database_url, tmp_path, monkeypatch, change, reason
) -> None:
    url = make_url(postgresql_database_url).set(**change).render_as_string(hide_password=False)
    sentence = refusal(tmp_path, monkeypatch, DATABASE_URL=url)
    assert reason in sentence
    assert "HOWSURE_DATABASE_URL" in sentence


@pytest.mark.parametrize("name", ["data", "data/artifacts"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch, name) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    sentence = refusal(tmp_path / "data", monkeypatch)
    assert f"folder {file} (File exists)" in sentence
    assert "HOWSURE_DATA_DIR" in sentence


@pytest.mark.slow
def test_a_wrong_password_is_named(tmp_path, monkeypatch) -> None:
    with PostgresServer(fsync=False, password=SECRET[::-1]) as server:
        url = make_url(server.url).set(password=SECRET).render_as_string(hide_password=False)
        sentence = refusal(tmp_path, monkeypatch, DATABASE_URL=url)
    assert 'password authentication failed for user "postgres"' in sentence
    assert SECRET not in sentence


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may write everywhere; an ordinary user runs it in CI"
)
def test_a_folder_of_another_user_is_named(tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o500)
    sentence = refusal(tmp_path, monkeypatch)
    assert f"{tmp_path} (Permission denied)" in sentence
    assert "HOWSURE_DATA_DIR" in sentence


def command(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env=os.environ | {f"HOWSURE_{name}": value for name, value in settings.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def sentence_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command wrote to stderr, without its line breaks."""
    assert done.returncode == 1
    return " ".join(done.stderr.split())


@pytest.mark.process
def test_a_full_disk_is_named(tmp_path) -> None:
    mounting = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"
    if command(*mounting, mount).returncode != 0:
        pytest.skip("this user may not mount anything")
    serve = f"exec {sys.executable} -m service serve"
    done = command(*mounting, f"{mount} && {serve}", DATA_DIR=str(tmp_path), PORT="0")
    assert f"{tmp_path} (No space left on device)" in sentence_of(done)
    assert "HOWSURE_DATA_DIR" in sentence_of(done)


BOTH = "Landlock and seccomp"
QUICK = {("serve", BOTH)}


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "missing"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
        for case in product(("serve", "worker", "demo"), ("Landlock", BOTH))
    ],
)
def test_a_kernel_without_a_sandbox_is_named(tmp_path, words, missing) -> None:
    done = command(
        sys.executable,
        without_sandbox.__file__,
        missing,
        words,
        DATA_DIR=str(tmp_path / "data"),
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    assert f"the kernel lacks {missing}, " in sentence_of(done)
    assert "HOWSURE_ALLOW_UNSANDBOXED=true" in sentence_of(done)
    assert not (tmp_path / "data").exists()
