"""Tables of a model's outputs: a column for each class by index or by name, or one of class 1."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from howsure.limits import MAX_NAME_LENGTH
from howsure.outputs import OutputKind
from service.child.reading.checks import SUPPLIED_PREFIX, check_n_classes, supplied_names
from service.child.reading.columns import (
    TableColumn,
    TableColumns,
    label_column,
    listed,
    nearest,
    other_columns,
    rename_hint,
)
from service.child.reading.sampling_design import design_columns
from service.runner.messages.reading import LABEL, Reading, SetContext

# What the names of class columns begin with; an index or the name of the class follows.
PREFIXES: Mapping[OutputKind, str] = {"logits": "logit_", "probabilities": "prob_"}
# `proba_` is scikit-learn's word, `.pred_` that of tidymodels.
_BY_INDEX = re.compile(r"(logit_|proba?_)(0|[1-9][0-9]{0,8})")
_BY_NAME = re.compile(r"(logit_|proba?_|p_|\.pred_)(.+)", re.DOTALL)
# One column with the probability of class 1 of two.
_BINARY = re.compile("p|prob|probability")
_BINARY_CLASSES = 2
_LABELS = ("y", "y_true", "target", "class", "truth")


def reads_outputs(columns: Mapping[str, TableColumn], reading: Reading) -> bool:
    """Tell whether a table has outputs of classes, and the caller asks for no inputs.

    Beside a model, names such as `p_value` are features.
    """
    if reading.input_columns:
        return False
    if any(_BY_INDEX.fullmatch(name) for name in columns):
        return True
    return reading.kind != "inputs" and (
        _in_lists(columns) is not None or any(map(is_output, columns))
    )


def is_output(name: str) -> bool:
    """Tell whether a column is called as outputs of a class are."""
    return any(form.fullmatch(name) for form in (_BY_INDEX, _BY_NAME, _BINARY))


@dataclass(frozen=True)
class _Classes:
    """The columns of the classes, class 0 first; their names and a note, if columns name them."""

    prefix: str
    columns: Sequence[str]
    names: tuple[str, ...] | None = None
    note: str | None = None


def output_columns(columns: Mapping[str, TableColumn], ctx: SetContext) -> TableColumns:
    """Return which columns of a table of outputs are read for what.

    Raises
    ------
    InvalidDataset
        If the label is required and missing, there are other columns, logits and probabilities
        together, or no column for a class.
    TooLarge
        If there are more classes or supplied columns than is allowed.
    """
    names = list(columns)
    label_name = label_column(names, ctx)
    # A column may be called "", as the row numbers that pandas writes.
    label = None if label_name is None else columns[label_name]
    lists = _in_lists(columns)
    found = _by_index(names, ctx) or lists or _by_name(names, ctx) or _binary(names, ctx)
    others = other_columns(names, [*found.columns, *([label.name] if label else [])])
    unknown = [
        name
        for name in others
        if _may_be_class(columns[name]) or (label is None and _may_be_label(name))
    ]
    if unknown:
        raise ctx.invalid(
            f"expected `label`, {_expected(found)}, `{SUPPLIED_PREFIX}<name>`, `weight` and "
            f"`group`, got also {listed(unknown)}; leave other columns of numbers out",
        )
    class_names, given = found.names, tuple(ctx.reading.classes or ())
    n_classes = _BINARY_CLASSES if not found.prefix else len(found.columns)
    if found is lists:
        n_classes = len(given)  # the lists tell how many there are
    else:
        check_n_classes(n_classes, place=ctx.location, limits=ctx.limits)
    if class_names is None and len(set(given)) == len(given) == n_classes:
        class_names = given if label is not None and label.kind == "text" else None
    kind: OutputKind = "logits" if found.prefix == PREFIXES["logits"] else "probabilities"
    return TableColumns(
        kind,
        {kind: [columns[name] for name in found.columns]},
        label,
        supplied_names(names, location=ctx.location),
        notes=_notes(found.note, others),
        design=design_columns(names),
        class_names=class_names,
        has_named_classes=found.names is not None,
    )


def _may_be_class(column: TableColumn) -> bool:
    """Tell whether a column may be that of a class under another name: text and integers are not.

    So ids, dates and answers in words may stay beside the outputs.
    """
    return column.kind in ("numbers", "lists") and np.dtype(column.dtype).kind == "f"


def _may_be_label(name: str) -> bool:
    """Tell whether a column is called as labels are, nearly `label` included."""
    return name.casefold() in _LABELS or bool(rename_hint([name], [LABEL]))


def _notes(own: str | None, others: Sequence[str]) -> tuple[str, ...]:
    left = f"Other columns are not read: {listed(others)}." if others else None
    return tuple(note for note in (own, left) if note is not None)


def _in_lists(columns: Mapping[str, TableColumn]) -> _Classes | None:
    """Return the column of lists that holds the outputs of all classes."""
    of_lists = [kind for kind in PREFIXES if kind in columns and columns[kind].kind == "lists"]
    return _Classes(PREFIXES[of_lists[0]], of_lists[:1]) if of_lists else None


def _expected(found: _Classes) -> str:
    if not found.prefix or found.columns[0] in PREFIXES:
        return f"`{found.columns[0]}`"
    if found.names is None:
        return f"`{found.prefix}0`, `{found.prefix}1`, …"
    return f"`{found.prefix}<class>` for each class"


def _one_prefix(matches: Iterable[re.Match[str]], ctx: SetContext) -> str:
    prefixes = {match[1] for match in matches}
    if len(prefixes) > 1:
        raise ctx.invalid("expected logits or probabilities, got columns of both; send one kind")
    return prefixes.pop()


def _by_index(names: Sequence[str], ctx: SetContext) -> _Classes | None:
    matches = [match for name in names if (match := _BY_INDEX.fullmatch(name))]
    if not matches:
        return None
    prefix = _one_prefix(matches, ctx)
    indices = {int(match[2]) for match in matches}
    gap = next((index for index in range(len(indices)) if index not in indices), None)
    if gap == 0 and prefix != PREFIXES["logits"] and max(indices) == len(indices) > 1:
        return None  # classes whose names begin with 1, as their columns and labels say
    if gap is not None:
        fix = ""
        if indices == {1} and prefix != PREFIXES["logits"]:
            fix = "; call the column `prob` if it is the probability of class 1 of two"
        raise ctx.invalid(
            f"expected a column for each class up to {max(indices)}, got none for class {gap}{fix}",
            f"{prefix}{gap}",
        )
    return _Classes(prefix, [f"{prefix}{index}" for index in range(len(indices))])


def _by_name(names: Sequence[str], ctx: SetContext) -> _Classes | None:
    matches = [match for name in names if (match := _BY_NAME.fullmatch(name))]
    if not matches:
        return None
    prefix = _one_prefix(matches, ctx)
    found = [match[2] for match in matches]
    if len(found) == 1 and prefix != PREFIXES["logits"]:
        raise ctx.invalid(
            f"expected a column for each class, got `{prefix}` and a name once; call the column "
            "`prob` if it is the probability of class 1 of two",
            f"{prefix}{found[0]}",
        )
    long = next((name for name in found if len(name) > MAX_NAME_LENGTH), None)
    if long is not None:
        raise ctx.invalid(
            f"expected the name of a class, of at most {MAX_NAME_LENGTH} characters, after "
            f"`{prefix}`, got {len(long)}"
        )
    expected = _known_classes(ctx)
    if expected is None:
        ordered = sorted(found, key=int) if all(map(str.isdecimal, found)) else found
        note = (
            f"Classes have the names of their columns, in this order: {listed(ordered)}; labels "
            "are these names, or their positions counted from 0."
        )
        return _Classes(prefix, [prefix + name for name in ordered], tuple(ordered), note)
    sent, known = set(found), set(expected)
    missing = [prefix + name for name in expected if name not in sent]
    unknown = [prefix + name for name in found if name not in known]
    if missing or unknown:
        raise ctx.invalid(
            f"expected a column for each of the {len(expected)} classes, {listed(expected)}"
            + (f"; missing: {listed(missing)}" if missing else "")
            + (f"; got also {listed(unknown)}" if unknown else "")
            + nearest(unknown, missing)
        )
    return _Classes(prefix, [prefix + name for name in expected], tuple(expected))


def _known_classes(ctx: SetContext) -> Sequence[str] | None:
    """Return the names of the classes by index, where the caller or an earlier set gave them."""
    class_map = ctx.reading.class_map
    if class_map is None:
        return ctx.reading.classes
    ordered = sorted(class_map, key=class_map.__getitem__)
    if [class_map[name] for name in ordered] != list(range(len(ordered))):
        raise ctx.invalid(
            "expected class_map to give the classes, which have a column each, the indices from 0 "
            f"to {len(ordered) - 1}"
        )
    return ordered


def _binary(names: Sequence[str], ctx: SetContext) -> _Classes:
    found = [name for name in names if _BINARY.fullmatch(name)]
    if len(found) > 1:
        raise ctx.invalid(f"expected one column of the probability of class 1, got {listed(found)}")
    note = f"Column `{found[0]}` is read as the probability of class 1 of two."
    return _Classes("", found, note=note)
