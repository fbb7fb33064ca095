"""Roles of a table's columns, outputs, inputs and labels, by their names and types."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from howsure.statistics.measures import SCORE
from service.child.reading.checks import SUPPLIED_PREFIX, check_n_classes, supplied_names
from service.child.reading.sampling_design import design_columns
from service.errors import TooLarge
from service.runner.messages.dataset import DESIGN_DTYPES, OutputKind
from service.runner.messages.preprocessing import PIXELS
from service.runner.messages.reading import Reading, SetContext

LABEL, INPUTS = "label", "inputs"
# Columns besides those of the classes: the label and supplied uncertainties.
MAX_OTHER_COLUMNS = 1_000

# A number per row; lists of numbers; pictures; and kinds that no model takes.
TableKind: TypeAlias = Literal["inputs"] | OutputKind
ColumnKind: TypeAlias = Literal["numbers", "lists", "pictures", "text", "dates", "others"]

# The names of a table's class columns begin with these.
PREFIXES: Mapping[OutputKind, str] = {"logits": "logit_", "probabilities": "prob_"}
_CLASS_COLUMN = re.compile(r"(logit_|prob_)(0|[1-9][0-9]{0,8})")
_SHOWN = 5
_SHOWN_KINDS = 3
# Row numbers, which pandas and R write beside the data.
_ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_[0-9]+__")
_NAMING = 'name the columns that are read in config.columns, such as {"inputs": ["age", "income"]}'


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

    ``arrays`` has the columns of each input; of outputs the columns of the classes, class 0 first.
    """

    kind: TableKind
    arrays: Mapping[str, Sequence[TableColumn]]
    label: TableColumn | None
    supplied: tuple[str, ...]
    notes: tuple[str, ...] = ()
    design: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int | None:
        """Number of classes of outputs."""
        return None if self.kind == "inputs" else len(self.arrays[self.kind])


def reads_outputs(names: Iterable[str], reading: Reading) -> bool:
    """Tell whether a table has a column for a class, and the caller asks for no inputs."""
    asked = set(reading.columns or ()) - {LABEL}
    return not asked and any(_CLASS_COLUMN.fullmatch(name) for name in names)


def check_n_columns(n_columns: int, ctx: SetContext) -> None:
    """Refuse a table with more columns than the classes allow, before its names are read."""
    most = ctx.limits.max_classes + MAX_OTHER_COLUMNS
    if n_columns > most:
        raise TooLarge.at(ctx.location, f"expected at most {most} columns, got {n_columns}")


def table_columns(columns: Sequence[TableColumn], ctx: SetContext) -> TableColumns:
    """Return which columns are read for what.

    Raises
    ------
    InvalidDataset
        If a name appears twice, a column that is asked for is missing, the label is required and
        missing, columns hold what no model takes, or a table of outputs has other columns, mixes
        logits and probabilities, or lacks a class.
    TooLarge
        If there are more classes or supplied columns than is allowed.
    """
    names = [column.name for column in columns]
    refuse_duplicates(names, ctx)
    by_name = {column.name: column for column in columns}
    if reads_outputs(names, ctx.reading):
        return _output_columns(by_name, ctx)
    asked = {name: of for name, of in (ctx.reading.columns or {}).items() if name != LABEL}
    label = by_name.get(label_column(names, ctx) or "")
    supplied = supplied_names(names, location=ctx.location)
    taken = {name for chosen in asked.values() for name in chosen} | {label.name if label else ""}
    design = design_columns(set(names) - taken)
    if asked:
        inputs = {name: _asked(name, chosen, by_name, ctx) for name, chosen in asked.items()}
        return TableColumns("inputs", _refuse_mixture(inputs, ctx), label, supplied, design=design)
    labels = {LABEL, *design} if label is None else {LABEL, label.name, *design}
    rest = [
        column
        for column in columns
        if column.name not in labels and not column.name.startswith(SUPPLIED_PREFIX)
    ]
    inputs, notes = _inferred(rest, names, ctx)
    notes = (*notes, *(_design_note(name) for name in design))
    return TableColumns("inputs", inputs, label, supplied, notes, design)


def _design_note(name: str) -> str:
    use = {"weight": "sampling weights", "group": "groups of samples that belong together"}[name]
    return (
        f"Column `{name}` is read as {use}, not as a feature; if it is a feature, name all "
        "features in config.columns.inputs."
    )


def _output_columns(columns: Mapping[str, TableColumn], ctx: SetContext) -> TableColumns:
    names = list(columns)
    if ctx.labels_required and LABEL not in names:
        raise ctx.invalid(f"expected a column `{LABEL}`, got {listed(names)}", LABEL)
    matches = [match for name in names if (match := _CLASS_COLUMN.fullmatch(name))]
    kinds = [kind for kind, prefix in PREFIXES.items() if any(m[1] == prefix for m in matches)]
    if len(kinds) > 1:
        raise ctx.invalid("expected logits or probabilities, got columns of both; send one kind")
    (kind,) = kinds
    prefix = PREFIXES[kind]
    known = {LABEL, *DESIGN_DTYPES, *(match[0] for match in matches)}
    unknown = [n for n in names if n not in known and not n.startswith(SUPPLIED_PREFIX)]
    if unknown:
        raise ctx.invalid(
            f"expected `{LABEL}`, `{prefix}0`, `{prefix}1`, …, `{SUPPLIED_PREFIX}<name>`, `weight` "
            f"and `group`, "
            f"got also {listed(unknown)}; leave other columns out",
        )
    supplied = supplied_names(names, location=ctx.location)
    indices = {int(match[2]) for match in matches}
    gap = next((index for index in range(len(indices)) if index not in indices), None)
    if gap is not None:
        raise ctx.invalid(
            f"expected a column for each class up to {max(indices)}, got none for class {gap}",
            f"{prefix}{gap}",
        )
    check_n_classes(len(indices), place=ctx.location, limits=ctx.limits)
    classes = [columns[f"{prefix}{index}"] for index in range(len(indices))]
    return TableColumns(
        kind, {kind: classes}, columns.get(LABEL), supplied, design=design_columns(names)
    )


def label_column(names: Sequence[str], ctx: SetContext) -> str | None:
    """Return the name of the label column, None if there is none and none is required.

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
                f"there are {listed(names)}",
            )
        return None
    if ctx.labels_required and LABEL not in names:
        fix = f'if it is called otherwise, say so in config.columns: {{"{LABEL}": ["its name"]}}'
        if SCORE in names:
            fix += f"; if these are pairs, call the column beside `{SCORE}` `correct`"
        raise ctx.invalid(f"expected a column `{LABEL}`, got {listed(names)}; {fix}", LABEL)
    return LABEL if LABEL in names else None


def _asked(
    name: str, chosen: Sequence[str], columns: Mapping[str, TableColumn], ctx: SetContext
) -> Sequence[TableColumn]:
    missing = [column for column in chosen if column not in columns]
    if missing and chosen:
        near = get_close_matches(missing[0], [own for own in columns if own not in chosen], n=1)
        fix = f"; did you mean {listed(near)}?" if near else ""
        raise ctx.invalid(
            f"expected {len(chosen)} columns for {listed([name])}, by name in any order; "
            f"missing: {listed(missing)}; there are {listed(list(columns))}{fix}"
        )
    if not chosen:
        raise ctx.invalid(
            f"expected the columns that config.columns names for {listed([name])}, got none "
            f"called {listed(missing)}; there are {listed(list(columns))}",
        )
    found = [columns[column] for column in chosen]
    _refuse_unread([c for c in found if c.kind in ("text", "dates", "others")], ctx)
    if len(found) > 1 and any(column.kind != "numbers" for column in found):
        raise ctx.invalid(
            f"expected for {listed([name])} columns of one number per row, or one column of "
            f"{found[0].kind}, got {listed(chosen)}",
        )
    return found


def _refuse_mixture(
    inputs: dict[str, Sequence[TableColumn]], ctx: SetContext
) -> dict[str, Sequence[TableColumn]]:
    """Return the inputs; the array of pictures has the same name in every set."""
    pictures = [columns for columns in inputs.values() if columns[0].kind == "pictures"]
    if pictures and len(inputs) > 1:
        raise ctx.invalid(f"expected pictures as the one input, got {listed(list(inputs))}")
    return {PIXELS: pictures[0]} if pictures else inputs


def _inferred(
    columns: Sequence[TableColumn], names: Sequence[str], ctx: SetContext
) -> tuple[dict[str, Sequence[TableColumn]], tuple[str, ...]]:
    pictures = [column for column in columns if column.kind == "pictures"]
    if len(pictures) > 1:
        found = listed([column.name for column in pictures])
        raise ctx.invalid(
            f"expected one column of pictures, got {found}; "
            f'choose by config.columns, {{"{PIXELS}": ["its name"]}}',
        )
    inputs: dict[str, Sequence[TableColumn]] = {
        column.name: [column] for column in columns if column.kind == "lists"
    }
    if pictures:
        inputs = {PIXELS: pictures}
    if not inputs:
        return _features(columns, names, ctx)
    taken = [column.name for chosen in inputs.values() for column in chosen]
    left = [column.name for column in columns if column.name not in taken]
    note = f"Of the columns only {listed(taken)} are inputs; not read: {listed(left)}."
    return inputs, (note,) if left else ()


def _features(
    columns: Sequence[TableColumn], names: Sequence[str], ctx: SetContext
) -> tuple[dict[str, Sequence[TableColumn]], tuple[str, ...]]:
    if not columns:
        raise ctx.invalid(
            "expected columns of the model's inputs, or `logit_0`, `logit_1`, …, or `prob_0`, "
            f"`prob_1`, …, got {listed(names)}",
        )
    unread = [column for column in columns if column.kind != "numbers"]
    _refuse_unread(unread, ctx, is_all=len(unread) == len(columns))
    row_numbers = [column.name for column in columns if _ROW_NUMBER.fullmatch(column.name)]
    if row_numbers:
        raise ctx.invalid(
            f"expected features, got also the row number as {listed(row_numbers)}; write the "
            f"table without an index (index=False), or {_NAMING}",
        )
    found = listed([column.name for column in columns])
    note = f"Columns of `{INPUTS}`, in the order of the file: {len(columns)}, {found}."
    return {INPUTS: columns}, (note,)


def _refuse_unread(
    columns: Sequence[TableColumn], ctx: SetContext, *, is_all: bool = False
) -> None:
    if not columns:
        return
    by_type: dict[str, list[str]] = {}
    for column in columns:
        by_type.setdefault(column.type_name, []).append(column.name)
    types = list(by_type.items())[:_SHOWN_KINDS]
    found = ", ".join(f"{type_name} in {listed(names)}" for type_name, names in types)
    fix = f"encode them as numbers, or {_NAMING}"
    if is_all and all(column.kind == "text" for column in columns):
        fix = (
            "tokenise text first and send columns of token ids, lists such as `input_ids`; "
            "models that take text themselves are not supported yet"
        )
    raise ctx.invalid(f"expected numbers, got {found}; {fix}", _shown(columns[0].name))


def take_as_names(reading: Reading) -> bool:
    """Tell whether integer labels are names, because the caller's class map has integers only."""
    return bool(reading.class_map) and all(map(str.isdigit, reading.class_map or ()))


def refuse_duplicates(names: Sequence[str], ctx: SetContext) -> None:
    """Refuse a table with two columns of one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ctx.invalid("expected each column once, got it twice", _shown(name))
        seen.add(name)


def listed(names: Sequence[str]) -> str:
    """Return some of the names, as shown in messages."""
    more = ", …" if len(names) > _SHOWN else ""
    return ", ".join(f"`{_shown(name)}`" for name in names[:_SHOWN]) + more


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:60])
