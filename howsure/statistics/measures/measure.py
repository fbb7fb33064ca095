"""What an uncertainty measure is."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeAlias

from howsure.statistics.arrays import Floats
from howsure.statistics.softmax import RankedScores


@dataclass(frozen=True)
class SinglePassMeasure:
    """One scalar per sample from the classifier's output; larger = less certain.

    Attributes
    ----------
    name : str
        Its name everywhere: configuration, tables, JSON, graph outputs.
    compute : callable
        ``compute(ranked, k)`` returns float64 of shape (n_samples,), finite and never ``-0.0``;
        ``k`` is the Top-k event asked about, ``1 <= k <= m``.
    per_event : bool
        Whether ``k`` matters.
    needs_logits : bool
        Whether adding a constant to the logits shows, so that probabilities do not have it.
    """

    name: str
    compute: Callable[[RankedScores, int], Floats]
    per_event: bool = False
    needs_logits: bool = False


@dataclass(frozen=True)
class MultiPassMeasure:
    """How far a model's answers to the same sample differ from run to run; larger = less certain.

    Its values are made where the model runs, not from its scores.

    Attributes
    ----------
    name : str
        Its name everywhere, and that of its column: no event changes it.
    has_mean_prediction : bool
        Whether its passes have a mean probability: each is an answer to the sample itself.
    in_graph : bool
        Whether one run of one graph gives it.
    """

    name: str
    has_mean_prediction: bool
    in_graph: bool = False


MeasureKind: TypeAlias = Literal["single_pass", "multi_pass", "supplied", "output"]


@dataclass(frozen=True)
class Measure:
    """A measure as its name in a configuration says it.

    Attributes
    ----------
    kind : {"single_pass", "multi_pass", "supplied", "output"}
        From the classifier's output; from several runs of the model; a column that came with the
        samples; an output of the graph.
    name : str
        The registered name, or what follows ``supplied:`` or ``output:``.
    needs_logits, per_event, in_graph : bool
        Whether it needs logits, whether ``k`` matters, and whether one run of one graph gives it.
    """

    kind: MeasureKind
    name: str
    needs_logits: bool = False
    per_event: bool = False
    in_graph: bool = False

    @property
    def needs_model(self) -> bool:
        """Whether it takes an ONNX model, not only the scores of one."""
        return self.kind in {"output", "multi_pass"}

    def column(self, k: int) -> str:
        """Return the name under which the measure of the Top-k event is kept.

        ``neg_log_topk_mass_5``, ``entropy``; ``supplied_<name>`` for ``supplied:<name>``, and for
        ``output:<name>`` what `output_column` says.
        """
        if self.kind == "supplied":
            return f"supplied_{self.name}"
        if self.kind == "output":
            return output_column(self.name)
        return f"{self.name}_{k}" if self.per_event else self.name


_PLAIN = re.compile(r"[A-Za-z0-9_]{1,50}")


def output_column(name: str) -> str:
    """Return the name under which the values of a graph's output are kept, safe wherever one is.

    ``output_<name>`` where the name is 1 to 50 ASCII letters, digits and underscores. Other names
    are replaced by ``output-`` and 128 bits of their hash: escaped, they would grow without bound.
    """
    if _PLAIN.fullmatch(name):
        return f"output_{name}"
    return f"output-{blake2b(name.encode(), digest_size=16).hexdigest()}"


def prefix_column(column: str, n: int) -> str:
    """Return the name under which what the first ``n`` passes alone give is kept."""
    return f"{column}@{n}"
