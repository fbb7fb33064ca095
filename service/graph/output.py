"""Which output of an ONNX model holds the class scores, and how to read it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

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
    n_classes: int
    positive_column: int | None = None
    raw: bool = False
    precision: Precision = "float32"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "OutputChoice":
        """Rebuild what ``as_dict`` gave."""
        return cls(**values)
