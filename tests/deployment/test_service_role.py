"""The role of the service in docker-compose.yml: it owns its tables, and no row is free to it."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest
from databases import PostgresServer, libpq_url, opened_database, postgres_programs
from deployment_files import ROOT, SERVICES
from running_service import service_on
from schema_rows import fill, go_to, held
from sqlalchemy import make_url

from service.storage.database import bypasses_row_security
from service.storage.schema import upgrade

pytestmark = pytest.mark.process
SCRIPT = "docker/service_role.sql"
ROLE = "howsure_service"
WARNING = "row_level_security_is_off"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(fsync=False) as started:
        yield started


@pytest.fixture
def superuser(server: PostgresServer) -> Iterator[str]:
    """A database as the postgres image makes it, of a superuser of its name."""
    with psycopg.connect(libpq_url(server.url), autocommit=True) as connection:
        connection.execute("CREATE ROLE howsure SUPERUSER LOGIN PASSWORD 'secret'")
        connection.execute("CREATE DATABASE howsure OWNER howsure")
        url = make_url(server.url).set(username="howsure", database="howsure")
        yield url.render_as_string(hide_password=False)
        connection.execute("DROP DATABASE howsure WITH (FORCE)")
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}")
        connection.execute("DROP ROLE howsure")


def create_role(superuser: str) -> str:
    """Run the script as the postgres image does; return the URL with the role of the service."""
    options = ("-X", "-v", "ON_ERROR_STOP=1", "-f", ROOT / SCRIPT)
    run("psql", *options, libpq_url(superuser), environment={"POSTGRES_PASSWORD": "it's secret"})
    return make_url(superuser).set(username=ROLE).render_as_string(hide_password=False)


def run(
    program: str, *words: object, cwd: Path | None = None, environment: Mapping[str, str] = {}
) -> None:
    command = [postgres_programs() / program, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def is_exempt(url: str) -> bool:
    with opened_database(url) as database:
        return bypasses_row_security(database)


def test_compose_runs_the_script_and_uses_the_role() -> None:
    mounts = SERVICES["postgres"]["volumes"]
    assert f"./{SCRIPT}:/docker-entrypoint-initdb.d/service_role.sql:ro" in mounts
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"].startswith("/secrets/")
    # The one URL that all services read.
    written = SERVICES["secrets"]["entrypoint"][-1]
    assert f"HOWSURE_DATABASE_URL=postgresql+psycopg://{ROLE}:$$(cat" in written
    for service in SERVICES.values():
        assert "HOWSURE_DATABASE_URL" not in service.get("environment", {})


def test_a_new_database_is_upgraded_by_a_role_that_is_not_exempt(superuser: str) -> None:
    service = create_role(superuser)
    upgrade(service)
    assert (is_exempt(superuser), is_exempt(service)) == (True, False)
    with psycopg.connect(libpq_url(superuser)) as connection:
        connection.execute(f"ALTER ROLE {ROLE} BYPASSRLS")
    assert is_exempt(service)


def test_a_database_of_the_superuser_goes_to_the_role_with_all_rows(superuser: str) -> None:
    upgrade(superuser)
    fill(superuser)
    before = held(superuser)
    service = create_role(superuser)
    assert create_role(superuser) == service
    assert held(service) == before
    go_to(service, "base")  # its owner alone may drop tables and functions
    upgrade(service)


def test_the_superuser_has_no_password_that_the_service_knows(superuser: str) -> None:
    create_role(superuser)
    with psycopg.connect(libpq_url(superuser)) as connection:
        query = "SELECT rolname, rolpassword IS NOT NULL FROM pg_authid WHERE rolname ~ 'howsure'"
        assert dict(connection.execute(query).fetchall()) == {"howsure": False, ROLE: True}


def test_the_role_dumps_all_rows_as_the_document_says(superuser: str, tmp_path: Path) -> None:
    service = create_role(superuser)
    upgrade(service)
    fill(service)
    page = (ROOT / "docs" / "backup.md").read_text(encoding="utf-8")
    [(options, words)] = re.findall(r'^PGOPTIONS="(.*)" pg_dump (.*) howsure$', page, re.MULTILINE)
    dump, before = tmp_path / "howsure.dump", held(service)
    variables = {"PGOPTIONS": options}
    run("pg_dump", *words.split(), libpq_url(service), cwd=tmp_path, environment=variables)
    with psycopg.connect(libpq_url(superuser), autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute(f"CREATE SCHEMA public AUTHORIZATION {ROLE}")
    run("pg_restore", "--no-comments", "-d", libpq_url(service), dump)
    assert held(service) == before


@pytest.mark.parametrize("role", ["superuser", "service"])
def test_a_service_with_an_exempt_role_says_so(superuser, tmp_path, capfd, role) -> None:
    url = create_role(superuser)
    with service_on(tmp_path, database_url=superuser if role == "superuser" else url):
        pass
    assert (WARNING in capfd.readouterr().err) == (role == "superuser")
