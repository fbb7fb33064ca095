"""What a caller says of a set beside its bytes: how its pictures, classes and columns are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.datasets.dataset import DatasetKind
from service.pictures.preprocessing import Preprocessing


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
