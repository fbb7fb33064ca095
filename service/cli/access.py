"""``howsure keys``: API keys and tenants, in the database directly."""

import json
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table

from service.cli.console import add_row, optional, print_table, with_options
from service.cli.failure import CommandFailed
from service.cli.local import local_stores, pepper_of

if TYPE_CHECKING:
    from models import AuditEntry
    from service.access.api_keys import MadeKey
    from service.storage.api_keys import ListedKey

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="API keys: access to the service, and scopes.",
)
TENANT = "default"
KeyId = Annotated[str, typer.Argument(help="Id of the key: see `howsure keys list`.")]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Name of the key, such as its purpose.")],
    tenant: Annotated[
        str, typer.Option(help="Tenant of the key; created if it does not exist.")
    ] = TENANT,
    scope: Annotated[
        list[str] | None, typer.Option(help="predict, read, write or admin; repeat it for several.")
    ] = None,
    days: Annotated[int, typer.Option(help="Days until it expires.")] = 365,
) -> None:
    """Create a key and print it once. From then on every request needs a key."""
    from service.access.api_keys import PREDICT, READ, WRITE, create_key, make_pepper

    with local_stores() as stores:
        made = create_key(
            stores.database,
            pepper_of(stores.settings, make_pepper),
            name=name,
            tenant=tenant,
            scopes=scope or [PREDICT, READ, WRITE],
            days=days,
        )
    _show(made)


@app.command("list")
def show(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
) -> None:
    """Show the keys, without their secrets."""
    from service.access.api_keys import list_keys

    with local_stores() as stores:
        found = list_keys(stores.database, tenant)
    table = Table(*("id", "tenant", "name", "scopes", "status", "expires", "last used"))
    for key in found:
        used = key.row.last_used_at
        add_row(
            table,
            key.row.id,
            key.tenant,
            key.row.name,
            " ".join(key.row.scopes),
            _status(key),
            f"{key.row.expires_at:%Y-%m-%d}",
            f"{used:%Y-%m-%d %H:%M}" if used else "",
        )
    print_table(table)


@app.command("rotate")
def rotate(
    key_id: KeyId,
    overlap: Annotated[
        float, typer.Option(min=0, max=8760, help="Hours until the old key expires.")
    ] = 24.0,
) -> None:
    """Create a key that replaces another, and print it once."""
    from service.access.api_keys import make_pepper, rotate_key

    with local_stores() as stores:
        pepper = pepper_of(stores.settings, make_pepper)
        made = rotate_key(stores.database, pepper, key_id, overlap=timedelta(hours=overlap))
    _show(made)


@app.command("revoke")
def revoke(key_id: KeyId) -> None:
    """Revoke a key for good; running services know within seconds."""
    from service.access.api_keys import revoke_key

    with local_stores() as stores:
        revoke_key(stores.database, key_id)
    typer.echo(f"revoked {key_id}")


def _show(made: "MadeKey") -> None:
    """Print only the key on standard output, for scripts."""
    console = Console(stderr=True)
    console.print(
        f"key {made.id}, until {made.expires_at:%Y-%m-%d}; it is shown only once:",
        highlight=False,
    )
    typer.echo(made.text)


def _status(key: "ListedKey") -> str:
    if key.row.revoked_at is not None:
        return "revoked"
    return "expired" if key.is_expired else "good"


tenants = typer.Typer(no_args_is_help=True, add_completion=False, help="Tenants and their limits.")
DEFAULT = "default"
NONE = "none"


@tenants.command("list")
def show_tenants() -> None:
    """Show the tenants and their limits."""
    from service.access.api_keys import list_tenants
    from service.access.rate_limits import TenantLimits

    with local_stores() as stores:
        found = list_tenants(stores.database, TenantLimits(**stores.settings.tenant_limits()))
    table = Table(*("tenant", "requests/s", "rows/min", "stored bytes", "jobs"))
    for name, limits in found:
        add_row(table, name, *(f"{limit:,}" if limit else NONE for limit in astuple(limits)))
    print_table(table)


def _limit(text: str) -> int | None:
    if text == DEFAULT:
        return None
    if text == NONE:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter(f"expected a whole number, {NONE!r} or {DEFAULT!r}, got {text!a}")
    return int(text)


LIMITS = {
    "requests_per_second": optional("N", "Requests."),
    "rows_per_minute": optional("N", "Rows of predictions."),
    "stored_bytes": optional("N", "Bytes of all files."),
    "jobs": optional("N", "Jobs queued or running."),
}


@tenants.command("limit")
@with_options(LIMITS)
def limit(
    name: Annotated[str, typer.Argument(help="Name of the tenant: see `howsure tenants list`.")],
    **limits: str | None,
) -> None:
    """Change the limits of a tenant: a number, `none` for unlimited, or `default`.

    Running services know within seconds.
    """
    from service.access.api_keys import limit_tenant

    changes = {what: _limit(text) for what, text in limits.items() if text}
    with local_stores() as stores:
        limit_tenant(stores.database, name, changes)
    typer.echo(f"changed {name}")


@tenants.command("jobs")
def show_jobs() -> None:
    """Show the queued and running jobs of all tenants, oldest first."""
    from service.jobs.operation import unfinished_of_all
    from service.storage.tenants import ALL_TENANTS

    table = Table(*("tenant", "job", "id", "status", "since"), box=None)
    with local_stores() as stores, stores.database.reading(ALL_TENANTS) as session:
        for tenant, row in unfinished_of_all(session):
            since = row.created_at.isoformat()[:19]
            add_row(table, tenant, row.name, str(row.id), row.status, since)
    print_table(table)


@tenants.command("cancel")
def cancel(job_id: Annotated[UUID, typer.Argument(metavar="ID", help="Id of the job.")]) -> None:
    """Cancel a queued or running job of any tenant."""
    from service.access.audit_log import AuditEvent
    from service.jobs.operation import cancel_of_any
    from service.storage.tenants import ALL_TENANTS

    with local_stores() as stores, stores.database.session(ALL_TENANTS) as session:
        tenant_id = cancel_of_any(session, job_id)
        AuditEvent(tenant_id, "cancel", via="command").accepted(session, str(job_id))
    typer.echo(f"cancelled {job_id}")


COLUMNS = ("created_at", "via", "key_id", "action", "subject", "result", "code", "request_id")
RESULTS = ("accepted", "refused")


def audit(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, such as promote.")] = None,
    key: Annotated[str | None, typer.Option(help="Only by the key with this id.")] = None,
    result: Annotated[str | None, typer.Option(help=f"{' or '.join(RESULTS)}.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this id.")] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only from then on, in UTC: 2026-03-01T12:00:00.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 100,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Show the audit log: changes and refused requests of all tenants, newest first."""
    if result is not None and result not in RESULTS:
        raise CommandFailed(f"--result: expected {' or '.join(RESULTS)}, got {result!r}")
    asked = {"action": action, "key_id": key, "result": result, "subject": subject}
    only = {name: value for name, value in asked.items() if value is not None}
    start = None if since is None else since.replace(tzinfo=UTC)
    from service.storage.audit_log import audit_of_all
    from service.storage.tenants import ALL_TENANTS

    with local_stores() as stores, stores.database.reading(ALL_TENANTS) as session:
        rows = audit_of_all(session, tenant=tenant, limit=limit, since=start, only=only)
    found = [{"tenant": name} | _values(row) for name, row in rows]
    if as_json:
        for line in found:
            typer.echo(json.dumps(line))
        return
    table = Table("time", "tenant", "by", "action", "about", "result", "request", box=None)
    for line in found:
        ended = line["result"] if line["code"] is None else f"{line['result']}: {line['code']}"
        by = line["key_id"] or line["via"]
        about, request = line["subject"] or "", line["request_id"] or ""
        cells = (line["created_at"][:19], line["tenant"], by, line["action"], about, ended, request)
        add_row(table, *cells)
    print_table(table)


def _values(row: "AuditEntry") -> dict[str, Any]:
    values = {name: getattr(row, name) for name in COLUMNS}
    return values | {"created_at": row.created_at.isoformat()}
