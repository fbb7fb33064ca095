"""The caller's options for reading a set: its pictures, classes and columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.errors import InvalidDataset
from service.runner.messages.dataset import DatasetKind
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import Preprocessing


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
        For a table of inputs: the columns of each input. Other columns are not read.
    labels
        A separate .npy file with the labels.
    wants_labels
        Whether labels of pictures are read; if not, names of folders mean nothing.
    kind
        The content of a single array without a name; by default the model's input.
    """

    preprocessing: Preprocessing | None = None
    class_map: Mapping[str, int] | None = None
    classes: Sequence[str] | None = None
    columns: Mapping[str, Sequence[str]] | None = None
    labels: Path | None = None
    wants_labels: bool = True
    kind: DatasetKind | None = None


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
