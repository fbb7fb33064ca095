"""``howsure audit``: the audit table, from the database directly."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import typer
from rich.table import Table
from rich.text import Text

import models
from service.cli.failure import CommandFailed
from service.cli.opened_database import opened_database
from service.cli.wide_console import wide_console
from service.storage.audit import audit_of_all

COLUMNS = ("created_at", "via", "key_id", "action", "subject", "result", "code", "request_id")
RESULTS = get_args(models.AuditResult)


def audit(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant alone.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this one, such as promote.")] = None,
    key: Annotated[str | None, typer.Option(help="Only by the key of this id.")] = None,
    result: Annotated[str | None, typer.Option(help=f"{' or '.join(RESULTS)}.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this id.")] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only from then on, in UTC: 2026-03-01T12:00:00.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object a line.")] = False,
) -> None:
    """Show who changed what, or was refused to: of all tenants, newest first."""
    if result is not None and result not in RESULTS:
        raise CommandFailed(f"--result: expected {' or '.join(RESULTS)}, got {result!r}")
    asked = {"action": action, "key_id": key, "result": result, "subject": subject}
    only = {name: value for name, value in asked.items() if value is not None}
    start = None if since is None else since.replace(tzinfo=UTC)
    with opened_database() as (database, _), database.reading() as session:
        rows = audit_of_all(session, tenant=tenant, limit=limit, since=start, only=only)
    found = [{"tenant": name} | _values(row) for name, row in rows]
    if as_json:
        for line in found:
            typer.echo(json.dumps(line, ensure_ascii=False))
        return
    table = Table("time", "tenant", "by", "action", "about", "result", "request", box=None)
    for line in found:
        ended = line["result"] if line["code"] is None else f"{line['result']}: {line['code']}"
        by = line["key_id"] or line["via"]
        about, request = line["subject"] or "", line["request_id"] or ""
        cells = (line["created_at"][:19], line["tenant"], by, line["action"], about, ended, request)
        # As text: what somebody named may look like markup.
        table.add_row(*(Text(cell) for cell in cells))
    wide_console().print(table)


def _values(row: models.AuditEntry) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in COLUMNS}
    return values | {"created_at": row.created_at.isoformat()}
