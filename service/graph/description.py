"""What the service knows of an ONNX model without importing onnx."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

MAX_LENGTH = 80

NotNegative: TypeAlias = Annotated[int, Meta(ge=0)]


def quote(name: str) -> str:
    """Return the name in quotes, escaped and of bounded length."""
    return repr(name if len(name) <= MAX_LENGTH else f"{name[:MAX_LENGTH]}…")


def quote_all(names: list[str], *, at_most: int = 10) -> str:
    """Return the names in quotes, separated by commas, the rest counted."""
    shown = ", ".join(quote(name) for name in names[:at_most])
    more = len(names) - at_most
    return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True)
class TensorSpec:
    """A graph input or output.

    ``dtype`` is numpy's name of the type ("str" for text, "sequence", "map" and the like for what
    is no tensor, "unknown" where the file does not say). ``shape`` has None for a free dimension,
    and is itself None where the rank is not declared.
    """

    name: str
    dtype: str
    shape: tuple[NotNegative | None, ...] | None

    def __str__(self) -> str:
        """Return name, type and shape on one line, for messages."""
        if self.shape is None:
            return f"{quote(self.name)} {self.dtype}"
        dimensions = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{quote(self.name)} {self.dtype} ({dimensions})"


@dataclass(frozen=True)
class OnnxModelDescription:
    """An ONNX model's interface and versions.

    ``fixed_batch`` is the number of rows the graph insists on, None where any number will do.
    ``class_labels`` are those a classifier node carries, in the order of the score columns.
    ``external_files`` are the plain names of the files that hold weights beside the model.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    opset: NotNegative
    ir_version: NotNegative
    class_labels: tuple[int | str, ...] | None
    external_files: tuple[str, ...]
    fixed_batch: Annotated[int, Meta(ge=1)] | None


Kind: TypeAlias = Literal["logits", "probabilities"]
# In `inferred` where the caller says logits and the values say otherwise.
LIKE_PROBABILITIES = "no value is negative and every row sums to 1, as probabilities do"
Precision: TypeAlias = Literal["float32", "float64"]


@dataclass(frozen=True)
class OutputChoice:
    """The tensor that the uncertainty head reads.

    Attributes
    ----------
    name : str
        The graph output that was chosen, by the caller or by us.
    kind : {"logits", "probabilities"}
        What ``tensor`` holds; it may differ from what the output holds.
    tensor : str
        The tensor the head reads: the output itself, or the logits from which a proven softmax or
        sigmoid makes that output, because their tails keep more digits.
    inferred : str
        One sentence: what was inferred and from what, or what the caller said.
    n_classes : int
        Number of classes, at least 2.
    positive_column : int or None
        Where a binary model has one score, the column of ``tensor`` that holds the score of class
        1: class 0 has the complement (probabilities) or the logit 0. None: a column per class.
    raw : bool
        The classifier node that makes ``tensor`` (``ai.onnx.ml``) is to leave out its softmax or
        logistic function.
    precision : {"float32", "float64"}
        What the head computes in: float64 for models in double precision.
    """

    name: str
    kind: Kind
    tensor: str
    inferred: str
    n_classes: Annotated[int, Meta(ge=2)]
    positive_column: NotNegative | None = None
    raw: bool = False
    precision: Precision = "float32"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "OutputChoice":
        """Rebuild what ``as_dict`` gave."""
        return cls(**values)


NoiseKind: TypeAlias = Literal["keep", "normal", "uniform"]


@dataclass(frozen=True)
class NoiseSite:
    """A graph input that stands in the place of what would be drawn at random.

    Attributes
    ----------
    name : str
        The input, float32 of no declared shape: fed in a shape that broadcasts to the site's.
    kind : {"keep", "normal", "uniform"}
        What belongs there: 0 or ``1 / (1 - rate)``, which activations are multiplied by; standard
        normal numbers; numbers of [0, 1).
    rate : float
        Chance of a 0, for "keep".
    shape_output : str
        A graph output, int64 (rank,): the site's shape for the rows that are fed, whatever the
        shape of the noise.
    of_rows : bool
        The shape comes from the rows that are fed; otherwise it is that of a weight, say, and the
        same for all batches.
    """

    name: str
    kind: NoiseKind
    rate: float
    shape_output: str
    of_rows: bool = True

    @property
    def quiet(self) -> float:
        """Return what, fed in shape (1,), leaves the model without noise."""
        return {"keep": 1.0, "normal": 0.0, "uniform": 0.5}[self.kind]
