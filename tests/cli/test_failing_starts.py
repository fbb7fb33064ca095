"""A service that cannot start says why, and never what it was trusted with."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import pytest
import without_sandbox
from databases import PostgresServer
from sqlalchemy import create_engine, make_url, text

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


def refusal(folder, monkeypatch, **settings: object) -> str:
    """Return why a service with these settings does not start."""
    monkeypatch.setenv("HOWSURE_DATA_DIR", str(folder))
    for name, value in settings.items():
        monkeypatch.setenv(f"HOWSURE_{name}", str(value))
    with pytest.raises(CommandFailed) as failed:
        prepare(load_settings())
    return str(failed.value)


@pytest.fixture
def database(postgresql_database_url) -> Iterator[Callable[[str], str]]:
    """Make a database with the options of CREATE DATABASE; return its URL."""
    server, name = make_url(postgresql_database_url), f"test_{uuid.uuid4().hex}"
    url = server.set(database=name).render_as_string(hide_password=False)

    def made(options: str) -> str:
        execute(f'CREATE DATABASE "{name}" {options}')
        return url

    def execute(statement: str) -> None:
        engine = create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    yield made
    execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


ASCII = "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"


def test_a_database_of_another_encoding_is_refused(database, tmp_path, monkeypatch) -> None:
    said = refusal(tmp_path, monkeypatch, DATABASE_URL=database(ASCII))
    assert said.startswith("HOWSURE_DATABASE_URL: The encoding of the database is SQL_ASCII")


def test_a_read_only_database_is_refused(database, tmp_path, monkeypatch) -> None:
    url = make_url(database("TEMPLATE template0"))
    url = url.update_query_dict({"options": "-cdefault_transaction_read_only=on"})
    said = refusal(tmp_path, monkeypatch, DATABASE_URL=url.render_as_string(hide_password=False))
    assert said.startswith("HOWSURE_DATABASE_URL: The database is read-only")


def test_an_old_server_is_refused(database, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("service.storage.database.OLDEST_POSTGRESQL", 99)
    said = refusal(tmp_path, monkeypatch, DATABASE_URL=database("TEMPLATE template0"))
    assert "is too old: use 99 or later" in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
        ({"username": "nobody"}, 'role "nobody" does not exist'),
        ({"port": 1}, "Connection refused"),
    ],
    ids=["no such database", "no such user", "nothing listens"],
)
def test_a_database_that_cannot_be_used_is_named(
    postgresql_database_url, tmp_path, monkeypatch, change, reason
) -> None:
    url = make_url(postgresql_database_url).set(**change).render_as_string(hide_password=False)
    said = refusal(tmp_path, monkeypatch, DATABASE_URL=url)
    assert said.startswith("the database cannot be used (")
    assert reason in said


@pytest.mark.parametrize("name", ["data", "data/artifacts"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch, name) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    said = refusal(tmp_path / "data", monkeypatch)
    assert said.startswith("cannot create the ")
    assert f"folder {file} (File exists)" in said
    assert "HOWSURE_DATA_DIR" in said


def test_a_wrong_password_is_named(tmp_path, monkeypatch) -> None:
    with PostgresServer(fsync=False, password=SECRET[::-1]) as server:
        url = make_url(server.url).set(password=SECRET).render_as_string(hide_password=False)
        said = refusal(tmp_path, monkeypatch, DATABASE_URL=url)
    assert said.startswith("the database cannot be used (")
    assert 'password authentication failed for user "postgres"' in said
    assert SECRET not in said


@pytest.mark.skipif(
    os.geteuid() == 0, reason="root may write everywhere; an ordinary user runs it in CI"
)
def test_a_folder_of_another_user_is_named(tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o500)
    said = refusal(tmp_path, monkeypatch)
    assert said == (
        f"cannot write to the data folder {tmp_path} (Permission denied); see HOWSURE_DATA_DIR"
    )


def command(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env=os.environ | {f"HOWSURE_{name}": value for name, value in settings.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command wrote to stderr, without its line breaks."""
    return " ".join(done.stderr.split())


def test_a_full_disk_is_named(tmp_path) -> None:
    mounting = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}"
    if command(*mounting, mount).returncode != 0:
        pytest.skip("this user may not mount anything")
    serve = f"exec {sys.executable} -m service serve"
    done = command(*mounting, f"{mount} && {serve}", DATA_DIR=str(tmp_path), PORT="0")
    assert (done.returncode, sentence(done)) == (
        1,
        (
            f"cannot write to the data folder {tmp_path} (No space left on device); "
            "see HOWSURE_DATA_DIR"
        ),
    )


@pytest.mark.parametrize("words", ["serve", "worker", "demo"])
@pytest.mark.parametrize("missing", ["Landlock", "Landlock and seccomp"])
def test_a_kernel_without_a_sandbox_is_named(tmp_path, words, missing) -> None:
    done = command(
        sys.executable,
        without_sandbox.__file__,
        missing,
        words,
        DATA_DIR=str(tmp_path / "data"),
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    assert done.returncode == 1
    assert sentence(done).startswith(f"the kernel lacks {missing}, so nothing can read uploads")
    assert "HOWSURE_ALLOW_UNSANDBOXED=true" in sentence(done)
    assert not (tmp_path / "data").exists()
