"""Descriptions of ONNX models that do not import onnx."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from howsure.outputs import OutputKind, Precision

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

    ``dtype`` is numpy's name of the type ("str" for text; "sequence", "map" and so on for other
    values; "unknown" if not declared). ``shape`` has None for a free dimension, and is None if the
    rank is not declared.
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

    ``fixed_batch`` is the number of rows that the graph takes at a time, None if any number is
    possible; ``one_by_one`` is why it is 1 where the graph's inputs do not say so.
    ``class_labels`` are those of a classifier node, in the order of the score columns.
    ``external_files`` are the plain names of the files with external weights. ``parameters`` are
    the numbers in its initial tensors.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    opset: NotNegative
    ir_version: NotNegative
    class_labels: tuple[int | str, ...] | None
    external_files: tuple[str, ...]
    fixed_batch: Annotated[int, Meta(ge=1)] | None
    one_by_one: str = ""
    parameters: NotNegative = 0


# In `inferred` where the caller says logits and the values say otherwise.
LIKE_PROBABILITIES = "no value is negative and every row sums to 1, as probabilities do"
DecisionThreshold: TypeAlias = Annotated[float, Meta(gt=0, lt=1)] | None


@dataclass(frozen=True)
class OutputChoice:
    """The tensor that the uncertainty head reads.

    Attributes
    ----------
    name : str
        The chosen graph output, by the caller or the service.
    kind : {"logits", "probabilities"}
        Content of ``tensor``, which may differ from that of the output.
    tensor : str
        The tensor the head reads: the output itself, or the logits of a confirmed softmax or
        sigmoid, because their tails are more precise.
    inferred : str
        One sentence: what was inferred and why, or what the caller declared.
    n_classes : int
        Number of classes, at least 2.
    positive_column : int or None
        For a binary model with one score, the column of ``tensor`` with the score of class 1; class
        0 has the complement (probabilities) or the logit 0. None for one column per class.
    raw : bool
        Whether the classifier node that makes ``tensor`` (``ai.onnx.ml``) has to omit its softmax
        or logistic function.
    precision : {"float32", "float64"}
        Precision of the head: float64 for models in double precision.
    decision_threshold : float or None
        Class 1 of two is predicted where its probability reaches it; None for the class of the
        largest score.
    """

    name: str
    kind: OutputKind
    tensor: str
    inferred: str
    n_classes: Annotated[int, Meta(ge=2)]
    positive_column: NotNegative | None = None
    raw: bool = False
    precision: Precision = "float32"
    decision_threshold: DecisionThreshold = None


NoiseKind: TypeAlias = Literal["keep", "normal", "uniform"]


@dataclass(frozen=True)
class NoiseSite:
    """A graph input that replaces a random draw.

    Attributes
    ----------
    name : str
        The input, float32 of no declared shape: fed in a shape that broadcasts to the site's.
    kind : {"keep", "normal", "uniform"}
        Its values: 0 or ``1 / (1 - rate)``, a factor of activations; standard normal numbers;
        uniform numbers of [0, 1).
    rate : float
        Probability of a 0, for "keep".
    shape_output : str
        A graph output, int64 (rank,): the shape of the site for the given rows, independent of the
        shape of the noise.
    depends_on_rows : bool
        Whether the shape depends on the rows. Otherwise it is the same for all batches, such as
        that of a weight.
    """

    name: str
    kind: NoiseKind
    rate: float
    shape_output: str
    depends_on_rows: bool = True

    @property
    def neutral(self) -> float:
        """The value that, fed in shape (1,), disables the noise."""
        return {"keep": 1.0, "normal": 0.0, "uniform": 0.5}[self.kind]
