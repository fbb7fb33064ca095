"""The uncertainty measures as nodes of the graph.

All are computed from ``e_i = p_i / p_(1)``, the odds of the classes against the predicted one. The
small probabilities of the other classes in a confident row therefore stay precise: with ``rest``
the sum of e outside the top, U_k = -log(top-k mass) = log1p(rest / top-k sum), never
-log(1 - tiny).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from howsure.onnx_head.builder import GraphBuilder, log1p
from howsure.onnx_head.learned import add_inputs
from howsure.outputs import OutputKind

# exp() of less is 0 in float32. The bound avoids e * log(e) = 0 * inf for a logit of -inf.
LEAST_LOG_RATIO = -200.0
LEAST_RATIO = 1e-37
LARGEST_APART = 5


@dataclass(frozen=True)
class HeadTensors:
    """The tensors of a head: classes and probabilities of the top, measures by column, (n, 1).

    All measures are NaN if the scores are not finite; ``n_top`` is the number of top classes.
    ``inputs`` are those of the learned measure, side by side.
    """

    top_classes: str
    top_scores: str
    measures: dict[str, str]
    n_top: int
    inputs: str | None = None


def add_head(
    build: GraphBuilder,
    scores: str,
    kind: OutputKind,
    n_classes: int,
    *,
    threshold: float | None,
    n_top: int,
    top_k: Sequence[int],
    inputs: Sequence[str] = (),
) -> HeadTensors:
    """Append the head, with these inputs of the learned measure.

    With a decision ``threshold`` of two classes the first of the top is the predicted class, which
    may have the smaller probability.

    NaN, +inf and rows of only -inf give NaN in every float output; finite rows give neither NaN nor
    -0. Measures: entropy, -log p_(1) and -log of the top-k mass as in
    Finlay & Oberman, section 6.1, the margin 1 - (p_(1) - p_(2)) and, of logits alone, the energy
    -log sum exp(z) of Liu et al. 2020.
    """
    if threshold is None:
        top, top_classes = build.top(scores, n_top, n_classes)
    else:
        top, top_classes = build.decided(scores, kind, threshold)
    ratios, log_ratios, top_ratios = ratios_to_top(build, kind, scores, top, top_classes)
    tails = _Tails(build, ratios, top_classes, top_ratios, n_top, max(LARGEST_APART, *top_k))
    rest = tails.rest

    below_first = rest(1)
    total = build.add("Add", below_first, build.number(1))  # = 1 / p_(1)
    neg_log_pmax = log1p(build, below_first)
    spread = build.row_sums(build.add("Mul", ratios, log_ratios))  # <= 0: nothing cancels
    second = build.columns(top_ratios, 1, 2)
    measures = {
        "entropy": build.add("Sub", neg_log_pmax, build.add("Div", spread, total)),
        "neg_log_pmax": neg_log_pmax,
        "margin": build.add("Div", build.add("Add", below_first, second), total),
    }
    if kind == "logits":
        log_sum_exp = build.add("Add", build.columns(top, 0, 1), neg_log_pmax)
        measures["energy"] = without_minus_zero(build, build.add("Neg", log_sum_exp))
    for k in top_k:
        head = top_ratios if k == n_top else build.columns(top_ratios, 0, k)
        mass = build.row_sums(head)
        measures[f"neg_log_topk_mass_{k}"] = log1p(build, build.add("Div", rest(k), mass))

    learned = None
    if inputs:
        learned = add_inputs(
            build, inputs, rest_ratio=tails.ratio, entropy=measures["entropy"], second=second
        )
    top_scores = build.add("Div", top_ratios, total)
    return HeadTensors(top_classes, top_scores, measures, n_top, learned)


class _Tails:
    """Sums of e beyond the first k classes.

    The few largest are summed apart: the sum of a long row depends on where it lies in memory, but
    what is left to it is then too small to matter.
    """

    def __init__(
        self, build: GraphBuilder, ratios: str, classes: str, top: str, n_top: int, n_large: int
    ) -> None:
        self._build, self._ratios, self._classes, self._top = build, ratios, classes, top
        self._n_top, self._n_large = n_top, min(n_top, n_large)
        self._outside = self._without(self._n_large)
        self._beyond = build.row_sums(self._outside)

    def rest(self, k: int) -> str:
        """Return the sum beyond the first ``k``, at most as many as are summed apart."""
        if k == self._n_large:
            return self._beyond
        between = self._build.columns(self._top, k, self._n_large)
        return self._build.add("Add", self._beyond, self._build.row_sums(between))

    def ratio(self, k: int, temperature: float) -> str:
        """Return the ratio of the sum beyond the first ``k`` to theirs, of ``e^(1 / T)``."""
        build, n_apart = self._build, max(k, self._n_large)
        top, others = self._top, self._outside
        if n_apart != self._n_large:
            others = self._without(n_apart)
        if temperature != 1.0:
            exponent = build.number(1.0 / temperature)
            top, others = (build.add("Pow", ratios, exponent) for ratios in (top, others))
        beyond = build.row_sums(others)
        if k < n_apart:
            beyond = build.add("Add", beyond, build.row_sums(build.columns(top, k, n_apart)))
        head = top if k == self._n_top else build.columns(top, 0, k)
        return build.add("Div", beyond, build.row_sums(head))

    def _without(self, n: int) -> str:
        """Return e of all classes, with 0 for the first ``n``."""
        build = self._build
        nothing = build.add("Mul", build.columns(self._top, 0, n), build.number(0))  # keeps NaN
        classes = build.columns(self._classes, 0, n)
        return build.add("ScatterElements", self._ratios, classes, nothing, axis=1)


def ratios_to_top(
    build: GraphBuilder, kind: OutputKind, scores: str, top: str, top_classes: str
) -> tuple[str, str, str]:
    """Return e of all classes, log e, and e of the top classes, whose scores are ``top``."""
    first = build.columns(top, 0, 1)
    if kind == "logits":
        log_ratios = _at_least(build, build.add("Sub", scores, first), LEAST_LOG_RATIO)
        ratios = build.add("Exp", log_ratios)
    else:
        positive = _at_least(build, scores, 0.0)  # rounding may leave a -1e-9
        ratios = build.add("Div", positive, first)
        log_ratios = build.add("Log", _at_least(build, ratios, LEAST_RATIO))
    return ratios, log_ratios, build.add("GatherElements", ratios, top_classes, axis=1)


def without_minus_zero(build: GraphBuilder, values: str) -> str:
    """Replace -0, and values that round to it in float32, by 0."""
    is_tiny = build.add("Less", build.add("Abs", values), build.number(LEAST_RATIO))
    return build.add("Where", is_tiny, build.number(0), values)


def _at_least(build: GraphBuilder, values: str, bound: float) -> str:
    """Return max(values, bound), by Where, because providers treat NaN in Max differently."""
    least = build.number(bound)
    return build.add("Where", build.add("Less", values, least), least, values)
