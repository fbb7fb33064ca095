"""The studies: tables of papers, the calibrations that each needs, its rows and its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

FINLAY = (
    "Finlay & Oberman, Empirical Uncertainty Estimates for Classification by Deep Neural Networks"
)
OBERMAN = (
    "Oberman, Finlay, Iannantuono, Salvador, Calibrated Top-1 Uncertainty estimates for "
    "classification by score based models"
)
DING = (
    "Ding, Liu, Xiong, Shi, Revisiting the Evaluation of Uncertainty Estimation and Its "
    "Application to Explore Model Complexity-Uncertainty Trade-Off"
)
CONFIDENCE = "Empirical Confidence Estimates for Classification by Deep Neural Networks"
OVADIA = "Ovadia, Fertig, Ren et al., Can You Trust Your Model's Uncertainty?"

# What the rows of a study are: measures of one model, models, or methods on stress sets.
RowKind: TypeAlias = Literal["measures", "models", "methods"]
DROPOUT, LAST_LAYER_DROPOUT = "dropout_variance", "last_layer_dropout_variance"
ENSEMBLE, GRADIENT = "ensemble_variance", "gradient_norm"
PASSES = frozenset({DROPOUT, LAST_LAYER_DROPOUT, ENSEMBLE, GRADIENT})
PREFIX = "study"  # of the names of calibrations


@dataclass(frozen=True)
class Run:
    """A calibration of a study.

    Attributes
    ----------
    name : str
        Ends the name of the calibration.
    measures : tuple of str
        A row each.
    dropout_rate : float, optional
        Of all Dropout nodes; by default each has its own.
    """

    name: str
    measures: tuple[str, ...]
    dropout_rate: float | None = None

    @property
    def is_of_passes(self) -> bool:
        """Whether it runs a model more than once."""
        return not PASSES.isdisjoint(self.measures)

    def label(self, measure: str) -> str:
        """Return what the row of a measure is called."""
        return measure if self.dropout_rate is None else f"{measure}, rate {self.dropout_rate}"


@dataclass(frozen=True)
class Study:
    """A table of a paper.

    Attributes
    ----------
    paper, table : str
        Authors and title, and the number of the table.
    columns : tuple of str
        Scores of the report, or those of `CELLS` in ``service.cli.studies.table``.
    events : tuple of str
        By k; an event that the model does not have is left out.
    bins : tuple of int
        Numbers of bins, with rows for each.
    runs : tuple of Run
        The first has the measures of all models. Those after it need what a model may lack.
    rows : RowKind
    oracle : bool
        Whether bins of the loss have a row, too.
    """

    paper: str
    table: str
    columns: tuple[str, ...]
    events: tuple[str, ...] = ("1",)
    bins: tuple[int, ...] = (100,)
    runs: tuple[Run, ...] = ()
    rows: RowKind = "measures"
    oracle: bool = False

    @property
    def title(self) -> str:
        """What its table is called."""
        return f"{self.table} of {self.paper}"

    def with_measures(self, measures: Sequence[str]) -> Self:
        """Return it with more measures of the first run."""
        if not self.runs or not measures:
            return self
        first, *others = self.runs
        first = replace(first, measures=tuple(dict.fromkeys((*first.measures, *measures))))
        return replace(self, runs=(first, *others))


ONE_PASS = Run("one-pass", ("learned", "entropy", "neg_log_pmax", "neg_log_topk_mass"))
DROPOUT_RUNS = tuple(Run(f"dropout-{rate}", (DROPOUT,), rate) for rate in (0.002, 0.01, 0.05))
BY_MEASURE = (
    ONE_PASS,
    *DROPOUT_RUNS,
    Run("last-layer-dropout", (LAST_LAYER_DROPOUT,)),
    Run("ensemble", (ENSEMBLE,)),
)
BOTH = ("1", "5")
COARSE = (
    "edge_1",
    "edge_2",
    "share_1",
    "share_2",
    "share_rest",
    "right_1",
    "right_2",
    "right_rest",
)

_COARSE = Study(FINLAY, "Table 3", COARSE, BOTH, (10,), BY_MEASURE)
_BOTH_EVENTS = Study(
    OBERMAN, "Table 3", ("brier", "nll", "ece", "auroc", "eor"), BOTH, (20, 100), BY_MEASURE
)
STUDIES: Mapping[str, Study] = {
    "finlay-table-1": Study(
        FINLAY, "Table 1", ("eor", "merged_eor", "auroc"), BOTH, runs=BY_MEASURE, oracle=True
    ),
    "finlay-table-2": Study(FINLAY, "Table 2", ("brier",), BOTH, runs=BY_MEASURE, oracle=True),
    "finlay-table-3": _COARSE,
    "finlay-table-4": replace(_COARSE, table="Table 4"),
    "finlay-table-5": replace(_COARSE, table="Table 5"),
    "oberman-table-2": replace(_BOTH_EVENTS, table="Table 2", events=("1",), bins=(10, 100)),
    "oberman-table-3": _BOTH_EVENTS,
    "oberman-table-4": replace(_BOTH_EVENTS, table="Table 4"),
    "confidence-table-1": Study(
        CONFIDENCE,
        "Table 1",
        ("eor", "merged_eor"),
        BOTH,
        runs=(*BY_MEASURE, Run("gradient", (GRADIENT,))),
    ),
    "ding-table-1": Study(
        DING,
        "Table 1",
        ("accuracy", "auroc", "aupr", "aurc"),
        bins=(10,),
        runs=(Run("softmax", ("neg_log_pmax",)),),
        rows="models",
    ),
    "ovadia-appendix-g": Study(OVADIA, "Appendix G", ("lower", "median", "upper"), rows="methods"),
}


def names_in_lines() -> str:
    """Return the studies, a line each."""
    width = max(map(len, STUDIES))
    return "\n".join(
        f"  {name:{width}}  {study.paper.partition(', ')[0]}: {study.table}"
        for name, study in STUDIES.items()
    )
