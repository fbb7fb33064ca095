"""Types of uncertainty measures, and the columns that hold them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeAlias

from howsure.statistics.arrays import Floats
from howsure.statistics.softmax import RankedScores


@dataclass(frozen=True)
class SinglePassMeasure:
    """One scalar per sample from the classifier's output; larger = more uncertain.

    Attributes
    ----------
    name : str
        Its name everywhere: configuration, tables, JSON, graph outputs.
    compute : callable
        ``compute(ranked, k)`` returns float64 of shape (n_samples,), finite and never ``-0.0``;
        ``k`` is the Top-k event, ``1 <= k <= m``.
    per_event : bool
        Whether the measure depends on ``k``.
    needs_logits : bool
        Whether adding a constant to the logits changes the measure, so that probabilities do not
        determine it.
    """

    name: str
    compute: Callable[[RankedScores, int], Floats]
    per_event: bool = False
    needs_logits: bool = False


@dataclass(frozen=True)
class MultiPassMeasure:
    """The variation of a model's outputs over several runs; larger = more uncertain.

    It is computed where the model runs, not from stored scores.

    Attributes
    ----------
    name : str
        Its name everywhere, and that of its column for every event.
    has_mean_prediction : bool
        Whether its passes have a mean probability, because each pass predicts the sample itself.
    in_graph : bool
        Whether one run of one graph computes it.
    needs_logits : bool
        Whether it is defined for logits alone.
    """

    name: str
    has_mean_prediction: bool
    in_graph: bool = False
    needs_logits: bool = False


MeasureKind: TypeAlias = Literal["learned", "single_pass", "multi_pass", "supplied", "output"]


@dataclass(frozen=True)
class Measure:
    """A measure, parsed from its name in a configuration.

    Attributes
    ----------
    kind : {"learned", "single_pass", "multi_pass", "supplied", "output"}
        Fitted with the calibration; from the classifier's output; from several runs of the model;
        a column sent with the samples; an output of the graph.
    name : str
        The registered name, or the part after ``supplied:`` or ``output:``.
    needs_logits, per_event, in_graph : bool
        Whether it needs logits, depends on ``k``, and is computed by one run of one graph.
    """

    kind: MeasureKind
    name: str
    needs_logits: bool = False
    per_event: bool = False
    in_graph: bool = False

    @property
    def needs_model(self) -> bool:
        """Whether it needs an ONNX model, not only scores."""
        return self.kind in {"output", "multi_pass"}

    def column(self, k: int) -> str:
        """Return the name of the column that holds the measure of the Top-k event.

        ``neg_log_topk_mass_5``, ``entropy``; ``supplied_<name>`` for ``supplied:<name>``, and
        `output_column` for ``output:<name>``.
        """
        if self.kind == "supplied":
            return f"{SUPPLIED_COLUMN}{self.name}"
        if self.kind == "output":
            return output_column(self.name)
        return f"{self.name}_{k}" if self.per_event else self.name


# Begins the names of columns of supplied measures, and of no others.
SUPPLIED_COLUMN = "supplied_"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_]{1,50}")


def output_column(name: str) -> str:
    """Return the name of the column that holds a graph output; it is safe in any format.

    ``output_<name>`` if the name is 1 to 50 ASCII letters, digits and underscores. Other names are
    replaced by ``output-`` and 128 bits of their hash, because escaping would make them too long.
    """
    if PLAIN_NAME.fullmatch(name):
        return f"output_{name}"
    return f"output-{blake2b(name.encode(), digest_size=16).hexdigest()}"


def prefix_column(column: str, n: int) -> str:
    """Return the name of the column for the first ``n`` passes only."""
    return f"{column}@{n}"
