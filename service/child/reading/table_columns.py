"""Roles of a table's columns, outputs, inputs and labels, by their names and types."""

import re
from collections.abc import Mapping, Sequence

from howsure.preprocessing import PIXELS
from service.child.reading.checks import SUPPLIED_PREFIX, supplied_names
from service.child.reading.columns import (
    FIXES,
    MANY,
    TableColumn,
    TableColumns,
    label_column,
    listed,
    nearest,
    other_columns,
    refuse_duplicates,
    shown,
)
from service.child.reading.output_columns import output_columns, reads_outputs
from service.child.reading.sampling_design import design_columns
from service.errors import InvalidDataset
from service.runner.messages.onnx_models import ANY_INPUT
from service.runner.messages.reading import LABEL, SetContext

CALIBRATION = "calibration"
_SHOWN_KINDS = 3
# Row numbers, which pandas and R write beside the data.
_ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_[0-9]+__")
_NAMING = (
    'name the columns that are read in config.columns, such as {"inputs": ["age", "income"]} '
    "(--columns age,income)"
)


def table_columns(columns: Sequence[TableColumn], ctx: SetContext) -> TableColumns:
    """Return which columns are read for what.

    Raises
    ------
    InvalidDataset
        If a name appears twice, a column that is asked for is missing, the label is required and
        missing, columns hold what no model takes, or there are columns that nothing takes.
    TooLarge
        If there are more classes or supplied columns than is allowed.
    """
    names = [column.name for column in columns]
    refuse_duplicates(names, ctx)
    by_name = {column.name: column for column in columns}
    if reads_outputs(by_name, ctx.reading):
        return output_columns(by_name, ctx)
    asked = ctx.reading.input_columns
    label_name = label_column(names, ctx)
    # A column may be called "", as the row numbers that pandas writes.
    label = None if label_name is None else by_name[label_name]
    supplied = supplied_names(names, location=ctx.location)
    taken = {name for chosen in asked.values() for name in chosen}
    taken |= set() if label_name is None else {label_name}
    design = design_columns(set(names) - taken)
    if asked:
        others = other_columns(names, taken)
        inputs = {
            name: _asked(name, chosen, by_name, others, ctx) for name, chosen in asked.items()
        }
        if others and not ctx.reading.takes_other_columns:
            raise _not_taken(others, asked, ctx)
        return TableColumns("inputs", _refuse_mixture(inputs, ctx), label, supplied, design=design)
    labels = {LABEL, *design} if label is None else {LABEL, label.name, *design}
    rest = [
        column
        for column in columns
        if column.name not in labels and not column.name.startswith(SUPPLIED_PREFIX)
    ]
    inputs, notes = _inferred(rest, names, ctx)
    notes = (*notes, *(_design_note(name) for name in design))
    possible = [c.name for c in columns if c.kind == "numbers" and c.name != label_name]
    if ANY_INPUT not in inputs or len(possible) == len(rest):
        possible = []
    return TableColumns("inputs", inputs, label, supplied, notes, design, tuple(possible))


def _design_note(name: str) -> str:
    use = {"weight": "sampling weights", "group": "groups of samples that belong together"}[name]
    return (
        f"Column `{name}` is read as {use}, not as a feature; if it is a feature, name all "
        "features in config.columns.inputs."
    )


def _not_taken(
    others: Sequence[str], asked: Mapping[str, Sequence[str]], ctx: SetContext
) -> InvalidDataset:
    names = [name for chosen in asked.values() for name in chosen]
    fix = f"leave {'it' if len(others) == 1 else 'them'} out; for tables with other columns, "
    fix += "calibrate with config.columns (--columns)"
    if any(_ROW_NUMBER.fullmatch(name) for name in others):
        fix = "write the table without an index (index=False)"
    return ctx.invalid(
        f"expected the {len(names)} columns of the calibration set, {listed(names)}, got also "
        f"{listed(others)}; {fix}"
    )


def _asked(
    name: str,
    chosen: Sequence[str],
    columns: Mapping[str, TableColumn],
    others: Sequence[str],
    ctx: SetContext,
) -> Sequence[TableColumn]:
    if not chosen:
        raise ctx.invalid(f"config.columns names no column for {listed([name])}; name at least one")
    missing = [column for column in chosen if column not in columns]
    by_caller = ctx.location == CALIBRATION
    if missing:
        raise ctx.invalid(
            f"expected the column{'s' * (len(chosen) > 1)} of {listed([name])} by name, in any "
            f"order; missing: {listed(missing)}"
            + (f"; got also {listed(others)}" if others else "")
            # When calibrating, the caller names columns of the table; later tables have the names.
            + (nearest(missing, others) if by_caller else nearest(others, missing))
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
    if row_numbers and names[-1] == "":
        raise ctx.invalid(
            "expected names of columns, got none for the last: lines end with a comma"
        )
    if row_numbers:
        raise ctx.invalid(
            f"expected features, got also the row number as {listed(row_numbers)}; write the "
            f"table without an index (index=False), or {_NAMING}",
        )
    found = listed([column.name for column in columns], most=MANY)
    note = f"Columns of `{ANY_INPUT}`, in the order of the file: {len(columns)}, {found}."
    return {ANY_INPUT: columns}, (note,)


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
    fix = FIXES.get(columns[0].type_name, f"encode them as numbers, or {_NAMING}")
    if is_all and all(column.type_name == "text" for column in columns):
        fix = (
            "tokenise text first and send columns of token ids, lists such as `input_ids`; "
            "models that take text themselves are not supported yet"
        )
    raise ctx.invalid(f"expected numbers, got {found}; {fix}", shown(columns[0].name))
