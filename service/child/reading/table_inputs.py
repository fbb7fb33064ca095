"""Which columns of a table are the model's inputs: as the caller says, or by what they hold."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from service.child.reading.checks import SUPPLIED_PREFIX, supplied_names
from service.child.reading.table_columns import LABEL, listed, refuse_duplicates
from service.child.reading.table_labels import ReadColumns, TableLabels
from service.child.reading.tables import ArraySource, TableSet, array_infos
from service.runner.messages.dataset import DatasetInfo
from service.runner.messages.preprocessing import PIXELS
from service.runner.messages.reading import Reading, SetContext

# One number a row; lists of numbers; pictures; what no model takes as it is.
Holds: TypeAlias = Literal["numbers", "lists", "pictures", "text", "dates", "others"]

INPUTS = "inputs"
_SHOWN_KINDS = 3
# What pandas and R write beside the data: the number of the row.
_ROW_NUMBER = re.compile(r"|Unnamed: 0|__index_level_[0-9]+__")
_NAMING = 'config.columns, such as {"inputs": ["age", "income"]}'


@dataclass(frozen=True)
class TableColumn:
    """A column, what it holds, how that is called in messages, and its numpy dtype if it has one.

    A column of lists has the dtype that its array gets.
    """

    name: str
    holds: Holds
    found: str
    dtype: str = "float64"


@dataclass(frozen=True)
class InputColumns:
    """The columns of each input of the model, the label's, what is supplied, what was inferred."""

    inputs: Mapping[str, Sequence[TableColumn]]
    label: TableColumn | None
    supplied: tuple[str, ...]
    notes: tuple[str, ...]


def input_columns(columns: Sequence[TableColumn], ctx: SetContext) -> InputColumns:
    """Return which columns are read for what.

    Raises
    ------
    InvalidDataset
        If a name appears twice, a column that is asked for is missing, the label is required and
        missing, or columns hold what no model takes.
    """
    names = [column.name for column in columns]
    refuse_duplicates(names, ctx)
    by_name = {column.name: column for column in columns}
    asked = {name: of for name, of in (ctx.reading.columns or {}).items() if name != LABEL}
    labelled_by = label_column(names, ctx)
    label = None if labelled_by is None else by_name[labelled_by]
    supplied = supplied_names(names, location=ctx.location)
    if asked:
        inputs = {name: _asked(name, chosen, by_name, ctx) for name, chosen in asked.items()}
        return InputColumns(_refuse_mixture(inputs, ctx), label, supplied, ())
    labels = {LABEL} if label is None else {LABEL, label.name}
    rest = [
        column
        for column in columns
        if column.name not in labels and not column.name.startswith(SUPPLIED_PREFIX)
    ]
    inputs, notes = _inferred(rest, names, ctx)
    return InputColumns(inputs, label, supplied, notes)


def label_column(names: Sequence[str], ctx: SetContext) -> str | None:
    """Return the name of the column of labels, None if there is none and none is required.

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
        raise ctx.invalid(
            f"expected a column `{LABEL}`, got {listed(names)}; if it is called otherwise, "
            f'say so in config.columns: {{"{LABEL}": ["its name"]}}',
            LABEL,
        )
    return LABEL if LABEL in names else None


def _asked(
    name: str, chosen: Sequence[str], columns: Mapping[str, TableColumn], ctx: SetContext
) -> Sequence[TableColumn]:
    missing = [column for column in chosen if column not in columns]
    if missing or not chosen:
        raise ctx.invalid(
            f"expected the columns that config.columns names for {listed([name])}, got none "
            f"called {listed(missing)}; there are {listed(list(columns))}",
        )
    found = [columns[column] for column in chosen]
    if all(column.holds == "numbers" for column in found):
        return found
    _refuse_unread([c for c in found if c.holds in ("text", "dates", "others")], ctx)
    if len(found) > 1:
        raise ctx.invalid(
            f"expected for {listed([name])} columns of one number a row, or one column of "
            f"{found[0].holds}, got {listed(chosen)}",
        )
    return found


def _refuse_mixture(
    inputs: dict[str, Sequence[TableColumn]], ctx: SetContext
) -> dict[str, Sequence[TableColumn]]:
    """Return the same inputs, that of a picture under the name that pixels have in every set."""
    pictures = [columns for columns in inputs.values() if columns[0].holds == "pictures"]
    if not pictures:
        return inputs
    if len(inputs) > 1:
        raise ctx.invalid(f"expected pictures as the one input, got {listed(list(inputs))}")
    return {PIXELS: pictures[0]}


def _inferred(
    columns: Sequence[TableColumn], names: Sequence[str], ctx: SetContext
) -> tuple[dict[str, Sequence[TableColumn]], tuple[str, ...]]:
    pictures = [column for column in columns if column.holds == "pictures"]
    if len(pictures) > 1:
        found = listed([column.name for column in pictures])
        raise ctx.invalid(
            f"expected one column of pictures, got {found}; "
            f'choose by config.columns, {{"{PIXELS}": ["its name"]}}',
        )
    inputs: dict[str, Sequence[TableColumn]] = {PIXELS: pictures} if pictures else {}
    if not pictures:
        inputs = {column.name: [column] for column in columns if column.holds == "lists"}
    if inputs:
        taken = dict.fromkeys(column.name for chosen in inputs.values() for column in chosen)
        left = [column.name for column in columns if column.name not in taken]
        note = f"Of the columns only {listed(list(taken))} are inputs; not read: {listed(left)}."
        return inputs, (note,) if left else ()
    return _features(columns, names, ctx)


def _features(
    columns: Sequence[TableColumn], names: Sequence[str], ctx: SetContext
) -> tuple[dict[str, Sequence[TableColumn]], tuple[str, ...]]:
    if not columns:
        raise ctx.invalid(
            "expected columns of the model's inputs, or `logit_0`, `logit_1`, …, or `prob_0`, "
            f"`prob_1`, …, got {listed(names)}",
        )
    unread = [column for column in columns if column.holds != "numbers"]
    _refuse_unread(unread, ctx, is_all=len(unread) == len(columns))
    counted = [column.name for column in columns if _ROW_NUMBER.fullmatch(column.name)]
    if counted:
        raise ctx.invalid(
            f"expected features, got also the number of the row as {listed(counted)}; write the "
            f"table without an index (index=False), or name the columns that are read in {_NAMING}",
        )
    found = listed([column.name for column in columns])
    note = f"Columns of `{INPUTS}`, in the order of the file: {len(columns)}, {found}."
    return {INPUTS: columns}, (note,)


def _refuse_unread(
    columns: Sequence[TableColumn], ctx: SetContext, *, is_all: bool = False
) -> None:
    if not columns:
        return
    by_kind: dict[str, list[str]] = {}
    for column in columns:
        by_kind.setdefault(column.found, []).append(column.name)
    kinds = list(by_kind.items())[:_SHOWN_KINDS]
    found = ", ".join(f"{kind} in {listed(names)}" for kind, names in kinds)
    fix = f"encode them as numbers, or name the columns that are read in {_NAMING}"
    if is_all and all(column.holds == "text" for column in columns):
        fix = "tokenise text first and send columns of token ids, lists such as `input_ids`"
    raise ctx.invalid(f"expected numbers, got {found}; {fix}", listed([columns[0].name])[1:-1])


def take_as_names(reading: Reading) -> bool:
    """Tell whether integers are meant as names, for the caller says which index each has."""
    return bool(reading.class_map) and all(map(str.isdigit, reading.class_map or ()))


def open_inputs(
    columns: InputColumns,
    sources: Mapping[str, ArraySource],
    labels: TableLabels | int,
    read_columns: ReadColumns,
    ctx: SetContext,
    *,
    file_format: str,
) -> TableSet:
    """Return a table of inputs with its labels, or the number of its rows if it has none."""
    found = None if isinstance(labels, int) else labels
    n_samples = labels if isinstance(labels, int) else len(labels.labels)
    info = DatasetInfo(
        kind="inputs",
        format=file_format,
        arrays=array_infos(sources, n_samples),
        n_samples=n_samples,
        n_classes=None,
        supplied=columns.supplied,
        labelled=found is not None,
        class_map=None if found is None else found.class_map,
        is_numbered_by_name=found is not None and found.is_numbered_by_name,
        notes=(*columns.notes, *(() if found is None else found.notes)),
    )
    return TableSet(info, sources, None if found is None else found.labels, read_columns, ctx)
