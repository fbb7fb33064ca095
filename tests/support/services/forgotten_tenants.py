"""Statements as they would be if their authors had forgotten the tenant."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

# As the driver of PostgreSQL gets it: calibration.tenant_id = %(tenant_id_1)s::UUID
_CRITERION = re.compile(r"\w+\.tenant_id = %\(\w+\)s(::UUID)?")


@contextmanager
def forgotten_tenants() -> Iterator[list[str]]:
    """Remove the comparison with a tenant from each statement; yield those that had one."""
    shortened: list[str] = []

    def forget(
        _connection: object, _cursor: object, statement: str, parameters: Any, *_: object
    ) -> tuple[str, Any]:
        found = _CRITERION.sub("true", statement)
        if found != statement:
            shortened.append(statement)
        return found, parameters

    event.listen(Engine, "before_cursor_execute", forget, retval=True)
    try:
        yield shortened
    finally:
        event.remove(Engine, "before_cursor_execute", forget)
