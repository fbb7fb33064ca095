"""Sets of pairs: columns `score`, one number a sample, and `correct`, whether it was right."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from howsure.report.words.scores import PERCENT, scores_note
from howsure.shares import percent
from howsure.statistics.arrays import Floats, Labels
from howsure.statistics.measures import SCORE
from howsure.statistics.records.pairs import (
    CORRECT,
    WRONG,
    are_probabilities,
    pair_rows,
)
from service.child.reading.checks import check_n_samples, check_sizes, check_supplied
from service.child.reading.columns import CONFIDENCE, CORRECT_COLUMN, listed, rename_hint
from service.child.reading.output_columns import is_output
from service.child.reading.sampling_design import GROUP, check_design, design_columns, read_design
from service.child.reading.tables import ReadColumns, number_column
from service.errors import InvalidInput
from service.runner.messages.dataset import (
    DESIGN_DTYPES,
    PAIRS,
    AnyArray,
    ArrayInfo,
    Batch,
    DatasetInfo,
    ScoreRange,
)
from service.runner.messages.reading import LABEL, SetContext

READ_ROWS = 65_536
_TEXTS = dict.fromkeys(("1", "1.0", "true", "yes"), True)
_TEXTS |= dict.fromkeys(("0", "0.0", "false", "no"), False)
_ROLES = {SCORE, CONFIDENCE, CORRECT_COLUMN, *DESIGN_DTYPES}
PREDICTED = "predicted"
_NO_CLASS = ("", "None", "nan")
_EXPECTED = "expected 1 or 0, true or false, or yes or no"


def reads_pairs(names: Collection[str], ctx: SetContext) -> bool:
    """Tell whether a set holds pairs: it has `correct` in place of a label, or the caller knows.

    A caller who expects a model's outputs may be wrong, and is told so once the set is read.
    """
    if ctx.reading.kind in (PAIRS, "inputs"):
        return ctx.reading.kind == PAIRS
    if ctx.reading.kind is None and is_log(names) and ctx.reading.columns is None:
        return True
    has_label = "label" in names or "labels" in names
    asked = ctx.reading.columns
    if CORRECT_COLUMN not in names or has_label or asked is None:
        return CORRECT_COLUMN in names and not has_label
    if asked.keys() <= _ROLES and not {SCORE, CONFIDENCE}.isdisjoint(names):
        raise ctx.invalid(
            "config.columns (--columns) names columns of a model's inputs; columns of pairs are "
            "read by their names: rename them to `score`, `correct`, `group` and `weight`"
        )
    return False


def is_log(names: Collection[str]) -> bool:
    """Tell whether a table logs predictions, scores and true labels, and no outputs of classes."""
    roles = {*names}
    has_score = SCORE in roles or CONFIDENCE in roles
    is_other = CORRECT_COLUMN in roles or any(map(is_output, names))
    return {PREDICTED, LABEL} <= roles and has_score and not is_other


def require_columns(names: Sequence[str], ctx: SetContext) -> list[str]:
    """Return the columns to read: the score, `correct` if it is there, and the sampling design.

    Raises
    ------
    InvalidDataset
        If a column is missing.
    """
    needed = [SCORE, CORRECT_COLUMN] if ctx.labels_required else [SCORE]
    for name in needed:
        if name not in names:
            found = ", ".join(f"`{known[:60]}`" for known in list(names)[:5])
            use = {
                SCORE: "one number a sample, larger where the answer is more certain",
                CORRECT_COLUMN: "1 or 0 a sample, whether the answer was right",
            }[name]
            raise ctx.invalid(
                f"expected a column `{name}`, {use}, got {found or 'none'}"
                + (rename_hint(names, [name]) or _score_hint(names, name)),
                name,
            )
    if CORRECT_COLUMN not in names and ctx.reading.wants_labels:
        fix = rename_hint(names, [CORRECT_COLUMN])
        if fix:
            raise ctx.invalid(
                f"expected a column `{CORRECT_COLUMN}`, or none with such a name where it is not "
                f"known which answers were right{fix}",
                CORRECT_COLUMN,
            )
    return [name for name in (SCORE, CORRECT_COLUMN) if name in names] + [*design_columns(names)]


def _score_hint(names: Sequence[str], wanted: str) -> str:
    """Return the end of a message about a missing score: a column that is nearly its other name."""
    if wanted != SCORE:
        return ""
    short = next((name for name in names if name.casefold() in ("conf", "conf.")), None)
    return f"; rename `{short}` to `{CONFIDENCE}`" if short else rename_hint(names, [CONFIDENCE])


def read_pairs(
    names: Sequence[str], read_columns: ReadColumns, ctx: SetContext, *, file_format: str
) -> "PairSet":
    """Read a table of pairs; ``names`` are all of its columns.

    In a log, an answer is correct if the prediction is the label.
    """
    score = SCORE if SCORE in names or CONFIDENCE not in names else CONFIDENCE
    log = (PREDICTED, LABEL) if is_log(names) else ()
    renamed = [SCORE if name == score else name for name in names]
    wanted = require_columns([*renamed, CORRECT_COLUMN] if log else renamed, ctx)
    column_of = {name: score if name == SCORE else name for name in wanted}
    read = [name for name in column_of.values() if name in names] + list(log)
    parts: dict[str, list[AnyArray]] = {name: [] for name in wanted}
    start = 0
    for record_batch in read_columns(read, READ_ROWS):
        for name, column in column_of.items():
            parts[name].append(_column(record_batch, column, start, ctx))
        start += record_batch.num_rows
        if start > ctx.limits.max_samples:
            break
    check_n_samples(start, place=ctx.location, limits=ctx.limits)
    columns = {name: np.concatenate(found) for name, found in parts.items()}
    left = [name for name in names if name not in read]
    return PairSet(columns, ctx, file_format=file_format, left=left, is_log=bool(log))


def _agreement(record_batch: Any, start: int, ctx: SetContext) -> Labels:  # noqa: ANN401 - pyarrow has no types
    """Return the class of each pair: 0 where the prediction is the label, as text or number."""
    both = []
    for name in (PREDICTED, LABEL):
        values = [_as_class(str(value)) for value in record_batch.column(name).to_pylist()]
        if None in values:
            fault = "expected a class, got an empty cell"
            raise ctx.invalid(fault, name, start + values.index(None))
        both.append(values)
    hits = [predicted == label for predicted, label in zip(*both, strict=True)]
    return np.where(hits, CORRECT, WRONG).astype(np.int64)


def _as_class(cell: str) -> float | str | None:
    """Return a class in one form, so that 8, 8.0 and "8" are equal. An empty cell is None."""
    if cell in _NO_CLASS:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell.strip()


def _column(record_batch: Any, name: str, start: int, ctx: SetContext) -> AnyArray:  # noqa: ANN401 - pyarrow has no types
    if name == CORRECT_COLUMN and name not in record_batch.schema.names:
        return _agreement(record_batch, start, ctx)
    if name in DESIGN_DTYPES:
        return read_design(record_batch, name, start, ctx)
    if name == CORRECT_COLUMN:
        values = record_batch.column(name).to_numpy(zero_copy_only=False)
    else:
        values = number_column(record_batch, name, start, ctx)
        if values.dtype.kind not in "iuf":
            raise ctx.invalid(f"expected numbers, got {values.dtype.name}", name)
    return check_pairs(values, name, start, ctx)


def check_pairs(values: AnyArray, name: str, start: int, ctx: SetContext) -> AnyArray:
    """Return a slice of a column of pairs, checked by its name; ``start`` is its first row."""
    if name in DESIGN_DTYPES:
        return check_design(values, name, start=start, ctx=ctx)
    if name == CORRECT_COLUMN:
        return check_correct(values, start=start, ctx=ctx)
    return check_supplied(values, place=ctx.place(name), start=start)


def check_correct(values: AnyArray, *, start: int, ctx: SetContext) -> Labels:
    """Return the class of each pair: 0 if it is correct, 1 if it is wrong.

    Raises
    ------
    InvalidDataset
        If a value is none of 0, 1, true, false, yes and no.
    """
    if values.dtype.kind == "O":  # text, or a column with empty cells
        shown = [_TEXTS.get(str(value).strip().lower()) for value in values.tolist()]
        bad = np.array([value is None for value in shown], np.bool_)
        hits = np.array([bool(value) for value in shown], np.bool_)
    elif values.dtype.kind in "biuf":
        bad = (values != 0) & (values != 1)
        hits = values == 1
    else:
        raise ctx.invalid(f"{_EXPECTED}, got {values.dtype.name}", CORRECT_COLUMN)
    if bad.any():
        row = int(np.argmax(bad))
        found = values[row]
        got = "an empty cell" if found is None or found == "" else f"{str(found)[:40]}"
        raise ctx.invalid(
            f"{_EXPECTED}, got {got}; write whether the answer was right",
            CORRECT_COLUMN,
            start + row,
        )
    return np.where(hits, CORRECT, WRONG).astype(np.int64)


# As for probabilities of classes: rounding is no mistake.
TOLERANCE = 1e-3


def check_score_range(scores: Floats, known: ScoreRange, *, place: str) -> None:
    """Refuse scores outside 0 to 1 if all scores of the calibration set lie inside.

    Raises
    ------
    InvalidInput
        Naming the first such row.
    """
    bad = (scores < -TOLERANCE) | (scores > 1.0 + TOLERANCE)
    if not (are_probabilities(np.array(known)) and bad.any()):
        return
    row = int(np.argmax(bad))
    is_percent = bool(scores[row] > 1.0 and scores.min() >= 0.0 and scores.max() <= PERCENT)
    fix = "divide percentages by 100" if is_percent else "send scores on the scale of that set"
    raise InvalidInput.at(
        f"{place}[{row}]",
        f"expected a score from 0 to 1, as all scores of the calibration set, got {scores[row]:g}; "
        f"{fix}",
    )


class PairSet:
    """A set of pairs, which is small enough to be held whole."""

    def __init__(
        self,
        columns: Mapping[str, AnyArray],
        ctx: SetContext,
        *,
        file_format: str,
        left: Sequence[str] = (),
        is_log: bool = False,
    ) -> None:
        scores: Floats = columns[SCORE]
        known = columns.get(CORRECT_COLUMN)
        self._labels: Labels = np.zeros(len(scores), np.int64) if known is None else known
        self._scores = scores
        known_range = ctx.reading.score_range
        if known_range is not None:
            check_score_range(scores, known_range, place=ctx.place(SCORE))
        own_range = (float(scores.min()), float(scores.max()))
        self._probabilities = are_probabilities(np.array(known_range or own_range))
        self._design = {name: columns[name] for name in design_columns(columns)}
        notes = [scores_note(*own_range, probabilities=self._probabilities)]
        if is_log:
            share = percent(float(np.mean(columns[CORRECT_COLUMN] == CORRECT)))
            notes.append(
                f"The table is read as pairs: an answer is correct where `{PREDICTED}` is the "
                f"`{LABEL}`, as in {share} of its rows."
            )
        if left:
            notes.append(f"Other columns are not read: {listed(left)}.")
        if left and GROUP not in self._design:
            notes[-1] += (
                f" If answers belong together, as those about one document, call the column that "
                f"tells which `{GROUP}`."
            )
        self.info = DatasetInfo(
            kind=PAIRS,
            format=file_format,
            arrays={PAIRS: ArrayInfo("float64", (len(scores), 2))},
            n_samples=len(scores),
            n_classes=2,
            supplied=(SCORE,),
            labelled=known is not None,
            notes=tuple(notes),
            design=tuple(self._design),
            score_range=own_range,
        )
        check_sizes(self.info, ctx)

    def labels(self) -> Labels:
        """Return 0 for correct and 1 for wrong pairs; meaningless zeros if that is unknown."""
        return self._labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        for start in range(0, self.info.n_samples, size):
            rows = slice(start, start + size)
            scores = self._scores[rows]
            yield Batch(
                start,
                {PAIRS: pair_rows(scores, probabilities=self._probabilities)},
                self._labels[rows].copy(),
                {SCORE: -scores},
                {name: values[rows].copy() for name, values in self._design.items()},
            )
