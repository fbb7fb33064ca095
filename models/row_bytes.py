"""The bytes of documents and texts in a row: callers and models decide how long they are."""

import json
from collections.abc import Mapping

from sqlalchemy import JSON, Connection, event, inspect
from sqlalchemy.orm import Mapped, Mapper, mapped_column


class Weighed:
    """A row that counts the bytes of its documents and texts, for the limits of its tenant."""

    row_bytes: Mapped[int] = mapped_column(default=0, server_default="0")


def bytes_of(values: Mapping[str, object], row: type[Weighed]) -> int:
    """Return the bytes of the JSON columns among the values of a row."""
    columns = inspect(row).columns
    return sum(
        len(json.dumps(value))
        for name, value in values.items()
        if value is not None and isinstance(columns[name].type, JSON)
    )


@event.listens_for(Weighed, "before_insert", propagate=True)
def _weigh(mapper: Mapper[Weighed], _connection: Connection, row: Weighed) -> None:
    values = {column.key: getattr(row, column.key) for column in mapper.column_attrs}
    row.row_bytes = bytes_of(values, type(row)) + len(values.get("reason", "").encode())
