"""A manifest: the further sets of a folder, and what was changed in each."""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from howsure.client.resources import SetRole
from service.cli.failure import CommandFailed

COLUMNS = ("file", "name", "type", "intensity", "role", "labels")


@dataclass(frozen=True)
class ListedSet:
    """A line of a manifest.

    ``role`` is ``stress`` unless the line has another one: sets that were made do not change the
    verdict.
    """

    file: Path
    name: str
    type: str | None
    intensity: float | None
    role: SetRole
    labels: Path | None


def read_manifest(manifest: Path, folder: Path) -> list[ListedSet]:
    """Return the sets that a CSV file lists; their files lie in ``folder``.

    Raises
    ------
    CommandFailed
        If it is no CSV file with these columns, or a line breaks a rule.
    """
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            columns = rows.fieldnames or []
            unknown = [name for name in columns if name not in COLUMNS]
            if "file" not in columns or unknown:
                raise CommandFailed(
                    f"{manifest} must begin with the column file and may have "
                    f"{', '.join(COLUMNS[1:])}; it has {', '.join(columns) or 'no column'}"
                )
            sets = [_listed(row, folder, f"{manifest}, line {rows.line_num}") for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandFailed(f"{manifest} is no readable CSV file: {error}") from error
    if not sets:
        raise CommandFailed(f"{manifest} lists no set")
    for name in _repeated(one.name for one in sets):
        raise CommandFailed(f"{manifest} names two sets {name!r}: give them a column name")
    return sets


def _listed(row: dict[str, str | None], folder: Path, place: str) -> ListedSet:
    cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
    roles: tuple[SetRole, ...] = get_args(SetRole)
    role = cells["role"] or "stress"
    if None in row:
        raise CommandFailed(f"{place}: has more cells than the first line")
    if role not in roles:
        raise CommandFailed(f"{place}: role must be {' or '.join(roles)}, not {role!r}")
    file = _file(cells["file"], folder, place)
    return ListedSet(
        file=file,
        name=cells["name"] or file.stem,
        type=cells["type"] or None,
        intensity=_number(cells["intensity"], place) if cells["intensity"] else None,
        role=roles[roles.index(role)],
        labels=_file(cells["labels"], folder, place) if cells["labels"] else None,
    )


def _file(name: str, folder: Path, place: str) -> Path:
    path = folder / name
    if not name or not path.exists():
        raise CommandFailed(f"{place}: there is no file {str(path)!r}")
    return path


def _number(text: str, place: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise CommandFailed(f"{place}: intensity must be a number from 0 on, not {text!r}")
    return number


def _repeated(names: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
