"""A service that cannot start says why, and never what it was trusted with."""

import uuid
from collections.abc import Callable, Iterator

import pytest
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
