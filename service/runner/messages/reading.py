"""What a caller says of a set beside its bytes: how its pictures, classes and columns are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.errors import InvalidDataset
from service.runner.messages.dataset import DatasetKind
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import Preprocessing


@dataclass(frozen=True)
class Reading:
    """How a set is read, where its file leaves that open.

    Attributes
    ----------
    preprocessing
        What makes pictures a model's input: a set of pictures is refused without it.
    class_map
        Class index by the name of a folder, or by what else stands for a class in the file.
    classes
        Names of the classes, by index: they map too, where there is no ``class_map``.
    columns
        Of a table of inputs: for each input of the model its column or columns. All that are
        left out are not read.
    labels
        A file of labels, .npy, that lies beside the set.
    wants_labels
        Whether labels of pictures are looked at: where they say nothing, no name need be one.
    kind
        What a lone array without a name holds: the model's input if it is not said.
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
    """A set that is opened: what it is called in errors, its limits, and how it is read."""

    location: str
    limits: DatasetLimits
    reading: Reading = AS_IT_IS
    labels_required: bool = True

    def place(self, name: str | None = None, row: int | None = None) -> str:
        """Return what the set is called, or an array or column of it, or a row of that."""
        named = self.location if name is None else f"{self.location}.{name}"
        return named if row is None else f"{named}[{row}]"

    def invalid(
        self, message: str, name: str | None = None, row: int | None = None
    ) -> InvalidDataset:
        """Return the error of a rule that is broken there."""
        return InvalidDataset.at(self.place(name, row), message)
