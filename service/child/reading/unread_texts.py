"""Columns of text that are not read, but tell where samples come from, such as `source`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from howsure.limits import MOST_TEXTS
from service.child.reading.columns import CORRECT_COLUMN, TableColumn, listed, shown
from service.child.reading.pairs import PREDICTED, READ_ROWS, PairSet
from service.child.reading.sampling_design import GROUP
from service.child.reading.tables import ReadColumns, TableSet
from service.runner.messages.dataset import is_word
from service.runner.messages.reading import LABEL, SetContext

# A column with fewer samples of each text says nothing of kinds of samples.
LEAST_SAMPLES = 10
_WITH_TEXTS = ("text", "numbers", "dates")


def add_texts(
    dataset: TableSet | PairSet,
    columns: Iterable[TableColumn],
    read_columns: ReadColumns,
    ctx: SetContext,
) -> None:
    """Add to the description of outputs or pairs the texts of each column that holds few.

    Raises
    ------
    InvalidDataset
        If a column holds another text than in the calibration set: what was measured on samples of
        one source promises nothing of another's.
    """
    if dataset.info.kind == "inputs":
        return
    known = ctx.reading.known_texts
    if known is None:
        used = {
            LABEL,
            PREDICTED,
            CORRECT_COLUMN,
            GROUP,
            *(ctx.reading.columns or {}).get(LABEL, ()),
        }
        names = [c.name for c in columns if c.kind == "text" and is_word(c.name)]
        names = [name for name in names if name not in used]
    else:
        # Whatever they hold now: the first row of CSV may lack a text.
        names = [c.name for c in columns if c.kind in _WITH_TEXTS and c.name in known]
    texts = _unread_texts(names, read_columns, ctx) if names else {}
    dataset.info = replace(dataset.info, texts=texts)


def _unread_texts(
    names: Sequence[str], read_columns: ReadColumns, ctx: SetContext
) -> dict[str, tuple[str, ...]]:
    known = ctx.reading.known_texts or {}
    texts: dict[str, set[str]] = {name: set() for name in names}
    start = 0
    for record_batch in read_columns(names, READ_ROWS):
        for name in list(texts):
            column = record_batch.column(name)
            own = {str(value) for value in column.unique().to_pylist() if value is not None}
            own.discard("")
            if known and (others := sorted(own.difference(known[name]))):
                raise ctx.invalid(
                    f"expected {listed(known[name])}, as in the calibration set, got "
                    f"`{shown(others[0])}`; rates measured on the one promise nothing of the "
                    "other: calibrate with samples of both, or leave the column out",
                    name,
                    start + [str(value) for value in column.to_pylist()].index(others[0]),
                )
            texts[name] |= own
            if len(texts[name]) > MOST_TEXTS or not all(map(is_word, own)):
                del texts[name]
        start += record_batch.num_rows
    return {
        name: tuple(sorted(own))
        for name, own in texts.items()
        if own and start >= LEAST_SAMPLES * len(own)
    }
