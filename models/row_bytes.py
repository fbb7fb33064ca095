"""How much a row holds of what its caller or a model decides the size of."""

import json
from collections.abc import Mapping

from sqlalchemy import JSON, Connection, event
from sqlalchemy.orm import Mapped, Mapper, mapped_column


class Weighed:
    """A row that counts the bytes of its documents and texts, for the limits of its tenant."""

    row_bytes: Mapped[int] = mapped_column(default=0, server_default="0")


def bytes_of(values: Mapping[str, object], row: type[Weighed]) -> int:
    """Return the bytes of the JSON columns among the values of a row."""
    columns = row.__table__.columns  # type: ignore[attr-defined]  # all are tables
    return sum(
        len(json.dumps(value))
        for name, value in values.items()
        if value is not None and isinstance(columns[name].type, JSON)
    )


@event.listens_for(Weighed, "before_insert", propagate=True)
def _weigh(_mapper: Mapper[Weighed], _connection: Connection, row: Weighed) -> None:
    stored = {column.name: getattr(row, column.name) for column in row.__table__.columns}  # type: ignore[attr-defined]
    reason = stored.get("reason", "")
    row.row_bytes = bytes_of(stored, type(row)) + len(reason.encode())
