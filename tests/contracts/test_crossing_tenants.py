"""Transactions see the rows of one tenant, but for those of a few modules."""

import re
from pathlib import Path

import service

FOLDER = Path(service.__file__).parent
# The operator's work, and work on rows whose tenant is not known before they are read.
CROSS_TENANTS = {
    "access/api_keys.py",
    "access/authenticator.py",
    "app.py",
    "backups/back_up.py",
    "backups/restore.py",
    "cli/access.py",
    "cli/serve.py",
    "jobs/queue.py",
    "metrics/route.py",
    "storage/database.py",
    "storage/orphans.py",
    "storage/overview.py",
    "storage/tenants.py",
}


MARK = re.compile(r"ALL_TENANTS|(session|reading)\(\s*[\"']\*")


def test_only_these_modules_open_transactions_that_cross_tenants() -> None:
    paths = [path for path in FOLDER.rglob("*.py") if MARK.search(path.read_text("utf-8"))]
    assert {str(path.relative_to(FOLDER)) for path in paths} == CROSS_TENANTS
