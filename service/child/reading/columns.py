"""The columns of a table: their kinds and roles, and their names in messages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np

from howsure.outputs import OutputKind
from howsure.statistics.measures import SCORE
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.class_indices import are_integers
from service.errors import COMPARED_CHARACTERS, TooLarge
from service.runner.messages.dataset import DESIGN_DTYPES
from service.runner.messages.reading import LABEL, SetContext

CORRECT_COLUMN = "correct"
# Another name of the score in tables.
CONFIDENCE = "confidence"
# What to do about labels that are names, beside outputs whose columns name no classes.
NAME_CLASSES = (
    'if labels are names of classes, list these from class 0 on in config.classes, ["no", "yes"] '
    "(--classes no,yes)"
)
# Columns besides those of the classes: the label and supplied uncertainties.
MAX_OTHER_COLUMNS = 1_000

# A number per row; lists of numbers; pictures; and kinds that no model takes.
TableKind: TypeAlias = Literal["inputs"] | OutputKind
ColumnKind: TypeAlias = Literal["numbers", "lists", "pictures", "text", "dates", "others"]

# Types that are not read, with what turns them into numbers.
SPARK_VECTOR = "a Spark vector"
DECIMAL_COMMA, THOUSANDS = "numbers with decimal commas", "numbers with commas between thousands"
_CONVERTS = "pandas.read_csv(path, {}).to_csv(new, index=False) converts the file"
FIXES = {
    SPARK_VECTOR: "write pyspark.ml.functions.vector_to_array of the column",
    DECIMAL_COMMA: _CONVERTS.format('decimal=","'),
    THOUSANDS: _CONVERTS.format('thousands=","'),
}

_SHOWN = 5
# Of lists that are meant to be checked name by name.
MANY = 30
# How alike two names are, from 0 to 1, where one is taken for a misspelling of the other.
_ALIKE = 0.8
# Comparing names is slow.
_COMPARED = 200


@dataclass(frozen=True)
class TableColumn:
    """A column: its kind, the name of its type in messages, and its numpy dtype if it has one.

    A column of lists has the dtype of its array.
    """

    name: str
    kind: ColumnKind
    type_name: str
    dtype: str = "float64"


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table that are read, and notes on what was inferred.

    ``arrays`` has the columns of each input; of outputs the columns of the classes, class 0 first,
    or the one column of the probability of class 1. ``class_names`` are the names that labels may
    use, by index, if the table or the caller names the classes of outputs; ``has_named_classes``
    tells whether its columns do.
    """

    kind: TableKind
    arrays: Mapping[str, Sequence[TableColumn]]
    label: TableColumn | None
    supplied: tuple[str, ...]
    notes: tuple[str, ...] = ()
    design: tuple[str, ...] = ()
    possible_features: tuple[str, ...] = ()
    class_names: tuple[str, ...] | None = None
    has_named_classes: bool = False
    n_listed: int = 0

    @property
    def holds_lists(self) -> bool:
        """Whether one column holds the outputs of all classes, ``n_listed`` in each row."""
        return self.kind != "inputs" and self.arrays[self.kind][0].kind == "lists"

    @property
    def is_binary(self) -> bool:
        """Whether one column holds the probability of class 1 of two."""
        is_one = self.kind != "inputs" and len(self.arrays[self.kind]) == 1
        return is_one and not self.holds_lists

    @property
    def n_classes(self) -> int | None:
        """Number of classes of outputs."""
        if self.kind == "inputs":
            return None
        return 2 if self.is_binary else self.n_listed or len(self.arrays[self.kind])


def check_n_columns(n_columns: int, ctx: SetContext) -> None:
    """Refuse a table with more columns than the classes allow, before its names are read."""
    most = ctx.limits.max_classes + MAX_OTHER_COLUMNS
    if n_columns > most:
        raise TooLarge.at(ctx.location, f"expected at most {most} columns, got {n_columns}")


def labels_are_names(columns: TableColumns, ctx: SetContext) -> bool:
    """Tell whether the labels of a table are names of classes.

    Integers are names where the caller's class map has integers only, or where the columns of the
    classes are called by integers that are not their positions.
    """
    names, label = columns.class_names, columns.label
    is_text = label is not None and label.kind != "numbers"
    if columns.kind == "inputs":
        return is_text or are_integers(ctx.reading.class_map)
    if not names:
        return False
    positions = tuple(map(str, range(len(names))))
    return is_text or (all(map(str.isdecimal, names)) and names != positions)


def label_column(names: Sequence[str], ctx: SetContext) -> str | None:
    """Return the name of the label column, None if there is none and none is required.

    A further set may call it `label`, whatever the calibration set calls it.

    Raises
    ------
    InvalidDataset
        If it is missing.
    """
    asked = (ctx.reading.columns or {}).get(LABEL)
    if asked is not None:
        if len(asked) == 1 and asked[0] in names:
            return asked[0]
        if ctx.labels_required or len(asked) != 1:
            raise ctx.invalid(
                f"expected config.columns.{LABEL} to name one column, got {listed(asked)}; "
                f"there are {listed(names, most=MANY)}{nearest(asked, names)}",
            )
        inputs = {name for of in ctx.reading.input_columns.values() for name in of}
        others = [name for name in names if name not in inputs]
        if LABEL in others:
            return LABEL
        if hint := rename_hint(others, asked):
            raise ctx.invalid(
                f"expected the labels in {listed(asked)}, as in the calibration set, or none{hint}",
                asked[0],
            )
        return None
    if ctx.labels_required and LABEL not in names:
        fix = (
            f'if it is called otherwise, say so in config.columns: {{"{LABEL}": ["its name"]}} '
            f"(--columns {LABEL}='its name')"
        )
        score = next((name for name in (SCORE, CONFIDENCE) if name in names), None)
        if score is not None:
            fix += "; " + (
                f"pairs of `{score}` and `{CORRECT_COLUMN}` are sent without a model"
                if CORRECT_COLUMN in names
                else f"if these are pairs, `{score}` needs a column `{CORRECT_COLUMN}` beside it, "
                "1 or 0 a sample, whether the answer was right"
            )
        elif alike := [name for name in names if SCORE in name.lower()]:
            fix += (
                f"; if these are pairs, rename {listed(alike[:1])} to `{SCORE}`, and the column of "
                f"1 or 0, whether the answer was right, to `{CORRECT_COLUMN}`"
            )
        hint = rename_hint(names, [LABEL, SCORE, CORRECT_COLUMN]).removeprefix("; ")
        # A column of a similar name may be another one; a header of numbers is none.
        fix = f"{hint}; {fix}" if hint.startswith("rename") else hint or fix
        raise ctx.invalid(f"expected a column `{LABEL}`, got {listed(names)}; {fix}", LABEL)
    return LABEL if LABEL in names else None


def refuse_duplicates(names: Sequence[str], ctx: SetContext) -> None:
    """Refuse a table with two columns of one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ctx.invalid("expected each column once, got it twice", shown(name))
        seen.add(name)


def listed(names: Sequence[str], *, most: int = _SHOWN) -> str:
    """Return some of the names, as shown in messages."""
    more = ", …" if len(names) > most else ""
    return ", ".join(f"`{shown(name)}`" for name in names[:most]) + more


def nearest(sent: Sequence[str], expected: Iterable[str]) -> str:
    """Return the end of a message: an expected name that is nearly one that was sent."""
    compared = [name for name in islice(expected, _COMPARED) if len(name) <= COMPARED_CHARACTERS]
    for name in sent[:_SHOWN]:
        for near in get_close_matches(name[:COMPARED_CHARACTERS], compared, n=1):
            return f"; did you mean {listed([near])}?"
    return ""


def rename_hint(names: Sequence[str], wanted: Iterable[str]) -> str:
    """Return the end of a message about missing columns: names that are nearly theirs.

    A header of numbers is taken for a first row without a header.
    """
    if names and all(is_number(name) for name in names):
        return "; the first line holds numbers: write the names of the columns above it"
    by_name = {n.strip().casefold(): n for n in names[:_COMPARED] if len(n) <= COMPARED_CHARACTERS}
    found = []
    for name in wanted:
        near = get_close_matches(name, by_name, n=1, cutoff=_ALIKE)
        if near and name not in names:
            found.append(f"{listed([by_name[near[0]]])} to `{name}`")
    return f"; rename {' and '.join(found)}" if found else ""


def is_number(name: str) -> bool:
    """Tell whether a text, a name or a cell, is a number."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def other_columns(names: Iterable[str], read: Collection[str]) -> list[str]:
    """Return the columns that have no role: not those read, labels, uncertainties, a design."""
    known = {LABEL, *DESIGN_DTYPES, *read}
    return [n for n in names if n not in known and not n.startswith(SUPPLIED_PREFIX)]


def shown(name: str) -> str:
    """Return a name as it is shown in messages."""
    return "".join(c if c.isprintable() else "?" for c in name[:60])


def refuse_null(
    values: Any,  # noqa: ANN401 - pyarrow has no types
    expected: str,
    start: int,
    name: str,
    ctx: SetContext,
    *,
    per_row: int = 1,
    fix: str = "",
) -> None:
    """Refuse a column with an empty cell, or NaN as text; ``per_row`` values belong to a row.

    ``fix`` is the end of the message.
    """
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        got = "an empty cell or NaN" if expected == "a number" else "an empty cell"
        message = f"expected {expected}, got {got}{fix}"
        raise ctx.invalid(message, name, start + at // per_row)
