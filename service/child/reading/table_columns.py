"""What the columns of a table of outputs are, by their names and never by their order."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from service.child.reading.checks import SUPPLIED_PREFIX, check_n_classes, supplied_names
from service.errors import TooLarge
from service.runner.messages.reading import Reading, SetContext

LABEL = "label"
# Columns beside those of the classes: the label and what is supplied.
MAX_OTHER_COLUMNS = 1_000

_PREFIXES: dict[str, Literal["logits", "probabilities"]] = {
    "logit_": "logits",
    "prob_": "probabilities",
}
_CLASS_COLUMN = re.compile(r"(logit_|prob_)(0|[1-9][0-9]{0,8})")
_SHOWN = 5


@dataclass(frozen=True)
class TableColumns:
    """The kind of a table's outputs, their columns in the order of the classes, and the rest."""

    kind: Literal["logits", "probabilities"]
    prefix: str
    n_classes: int
    supplied: tuple[str, ...]
    labelled: bool

    @property
    def classes(self) -> list[str]:
        """Names of the columns of the classes, class 0 first."""
        return [f"{self.prefix}{index}" for index in range(self.n_classes)]

    @property
    def all(self) -> list[str]:
        """Names of all columns that are read."""
        supplied = [f"{SUPPLIED_PREFIX}{name}" for name in self.supplied]
        return [*([LABEL] if self.labelled else []), *self.classes, *supplied]


def reads_outputs(names: Iterable[str], reading: Reading) -> bool:
    """Tell whether a table is one of outputs: a class has a column, and no inputs are asked for."""
    asked = set(reading.columns or ()) - {LABEL}
    return not asked and any(_CLASS_COLUMN.fullmatch(name) for name in names)


def check_n_columns(n_columns: int, ctx: SetContext) -> None:
    """Refuse a table that is wider than the classes allow, before its names are looked at."""
    most = ctx.limits.max_classes + MAX_OTHER_COLUMNS
    if n_columns > most:
        raise TooLarge.at(ctx.location, f"expected at most {most} columns, got {n_columns}")


def table_columns(names: Sequence[str], ctx: SetContext) -> TableColumns:
    """Return what the columns are.

    Raises
    ------
    InvalidDataset
        If a name appears twice or means nothing here, the label is required and missing, logits
        and probabilities are mixed, or a class between others has no column.
    TooLarge
        If there are more columns than is allowed.
    """
    refuse_duplicates(names, ctx)
    indices: dict[str, set[int]] = {prefix: set() for prefix in _PREFIXES}
    unknown: list[str] = []
    for name in names:
        match = _CLASS_COLUMN.fullmatch(name)
        if match:
            indices[match[1]].add(int(match[2]))
        elif name != LABEL and not name.startswith(SUPPLIED_PREFIX):
            unknown.append(name)
    labelled = LABEL in names
    if ctx.labels_required and not labelled:
        raise ctx.invalid(f"expected a column `{LABEL}`, got {listed(names)}", LABEL)
    prefix = _prefix(indices, names, ctx)
    if unknown:
        raise ctx.invalid(
            f"expected `{LABEL}`, `{prefix}0`, `{prefix}1`, … and `{SUPPLIED_PREFIX}<name>`, "
            f"got also {listed(unknown)}; leave other columns out",
        )
    supplied = supplied_names(names, location=ctx.location)
    n_classes = len(indices[prefix])
    gap = next((i for i in range(n_classes) if i not in indices[prefix]), None)
    if gap is not None:
        raise ctx.invalid(
            f"expected a column for each class up to {max(indices[prefix])}, "
            f"got none for class {gap}",
            f"{prefix}{gap}",
        )
    check_n_classes(n_classes, place=ctx.location, limits=ctx.limits)
    return TableColumns(_PREFIXES[prefix], prefix, n_classes, supplied, labelled)


def _prefix(indices: dict[str, set[int]], names: Sequence[str], ctx: SetContext) -> str:
    present = [prefix for prefix, found in indices.items() if found]
    if len(present) == 1:
        return present[0]
    if present:
        raise ctx.invalid("expected logits or probabilities, got columns of both; send one kind")
    raise ctx.invalid(
        f"expected columns `logit_0`, `logit_1`, … or `prob_0`, `prob_1`, …, got {listed(names)}"
    )


def refuse_duplicates(names: Sequence[str], ctx: SetContext) -> None:
    """Refuse a table two of whose columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ctx.invalid("expected each column once, got it twice", _shown(name))
        seen.add(name)


def listed(names: Sequence[str]) -> str:
    """Return some of the names as they may stand in a message."""
    more = ", …" if len(names) > _SHOWN else ""
    return ", ".join(f"`{_shown(name)}`" for name in names[:_SHOWN]) + more


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:60])
