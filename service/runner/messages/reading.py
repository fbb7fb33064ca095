"""The caller's options for reading a set: its pictures, classes and columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from howsure.preprocessing import Preprocessing
from service.errors import InvalidDataset
from service.runner.messages.dataset import DatasetKind, ScoreRange
from service.runner.messages.limits import DatasetLimits

# The column of the labels, and its key among the ``columns`` of a reading.
LABEL = "label"
# The key of `Reading.takes_other_columns` in the stored description of a calibration set.
TAKES_OTHER_COLUMNS = "takes_other_columns"
# Whether the labels are names that the model itself gives its classes.
NAMED_BY_MODEL = "labels_named_by_model"
EVALUATION_NAMED_BY_MODEL = f"evaluation_{NAMED_BY_MODEL}"
# Whether the labels of a further set are names of classes.
LABELS_ARE_NAMES = "labels_are_names"
# The key of the range of scores in it.
SCORE_RANGE = "score_range"
# The key of the texts in columns that are not read.
TEXTS = "texts"
# The key of the ranges of the inputs of a model.
INPUT_RANGES = "input_ranges"
# The key of the ranges of the columns of inputs, where they have names.
COLUMN_RANGES = "column_ranges"
# The key of the middles of the same columns.
COLUMN_MIDDLES = "column_middles"


@dataclass(frozen=True)
class Reading:
    """Options for reading a set.

    Attributes
    ----------
    preprocessing
        How pictures become the model's input; required for a set of pictures.
    class_map
        Class index by folder name, or by text label.
    classes
        Names of the classes, by index; used if there is no ``class_map``.
    columns
        For a table of inputs: the columns of each input, and that of the labels.
    takes_other_columns
        Whether a table may have columns that ``columns`` does not name. They are not read.
    labels
        A separate .npy file with the labels.
    wants_labels
        Whether labels of pictures are read; if not, names of folders mean nothing. Pairs whose
        `correct` is misspelled are refused only with it.
    kind
        The content of the set, where the caller knows it; that of a single array without a name is
        the model's input by default.
    score_range
        For a further set of pairs: the smallest and the largest score of the calibration set.
    known_texts
        For a later set: the few texts of each column of the calibration set that is not read.
    may_be_none_of_these
        Whether the label -1, where no class is called so, says that a sample's class is none of the
        model's.
    """

    preprocessing: Preprocessing | None = None
    class_map: Mapping[str, int] | None = None
    classes: Sequence[str] | None = None
    columns: Mapping[str, Sequence[str]] | None = None
    takes_other_columns: bool = True
    labels: Path | None = None
    wants_labels: bool = True
    kind: DatasetKind | None = None
    score_range: ScoreRange | None = None
    known_texts: Mapping[str, Sequence[str]] | None = None
    may_be_none_of_these: bool = False

    @property
    def input_columns(self) -> Mapping[str, Sequence[str]]:
        """The columns of each input; empty if the table decides."""
        return {name: of for name, of in (self.columns or {}).items() if name != LABEL}


AS_IT_IS = Reading()


@dataclass(frozen=True)
class SetContext:
    """An open set: its name in errors, its limits, and its options."""

    location: str
    limits: DatasetLimits
    reading: Reading = AS_IT_IS
    labels_required: bool = True

    def place(self, name: str | None = None, row: int | None = None) -> str:
        """Return the location of the set, of an array or column of it, or of a row."""
        named = self.location if name is None else f"{self.location}.{name}"
        return named if row is None else f"{named}[{row}]"

    def invalid(
        self, message: str, name: str | None = None, row: int | None = None
    ) -> InvalidDataset:
        """Return the error of a broken rule at this location."""
        return InvalidDataset.at(self.place(name, row), message)
