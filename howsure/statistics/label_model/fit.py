"""The fit of the model of the labels, and its cross-fit.

Coefficients have normal priors. Their scales and the floor are not known: a search visits settings
of them one step at a time and scores each by cross-validated likelihood, less what makes a richer
setting less likely beforehand. The settings that are nearly as good as the best are averaged.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import scipy  # its parts are imported when first used

from howsure.statistics.arrays import BinIndex, Floats, Uncertainty
from howsure.statistics.effective import effective_weights
from howsure.statistics.label_model.class_scores import (
    LEAST,
    ClassScores,
    recorded_log_rest,
    recorded_scores,
)
from howsure.statistics.label_model.likelihood import (
    Axes,
    Coefficients,
    LabelledScores,
    Likelihood,
    Scaling,
)
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.records.records import TEMPERATURES, Records
from howsure.statistics.softmax import BINARY

# The grid of each part of a setting, ascending.
FLOORS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
GRIDS: dict[str, Sequence[float]] = {
    "floor": FLOORS,
    "offset": (0.0, 0.1, 0.3, 1.0, 3.0),
    "slope": (0.0, 0.05, 0.15, 0.4),
    "mixing": (0.0, 0.02, 0.06, 0.2, 0.6),
    "confusion": (0.0, 0.15, 0.5, 1.5),
}
OF_TOP = ("floor", "offset", "slope")  # where not all classes are recorded, or there are two
STEP_COST = 1.5  # nats of each step up a grid
SWEEPS = 3
# Nats below the best: a grid is left, and a setting is averaged.
HOPELESS, NEAR = 3.0, 4.0
LEAST_GAIN = 1.0  # nats, of a floor by itself
MOST_TUNED, MOST_SCORES = 2_500, 500_000
# With fewer misses (or hits) coefficients are shrunk in proportion.
ENOUGH_EVENTS = 30.0
# With this many folds or more, pairs of them are held out together, if samples are not few.
LEAST_PAIRED, MOST_UNPAIRED = 5, 1_000

Setting: TypeAlias = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LabelFit:
    """The model of the labels, and the measure ``learned`` of one event: the negative log-odds.

    Attributes
    ----------
    model : LabelModel
        Fitted to all samples: it serves.
    uncertainty : ndarray of float32, shape (n_samples,)
        Of the calibration set, cross-fitted: the coefficients of a sample do not depend on its own
        label. Temperature, floor and prior scales do, one for all samples.
    class_effects : ndarray of float64, shape (n_classes,)
        Mean change of the log-odds by the coefficients, by predicted class.
    class_counts : ndarray of int64, shape (n_classes,)
        Samples by predicted class.
    """

    model: LabelModel
    uncertainty: Uncertainty
    class_effects: Floats
    class_counts: BinIndex


def n_classes_of(*sets: Records | None) -> int:
    """Return one more than the largest class among the recorded ones."""
    return 1 + max(
        int(max(records.top_classes.max(), records.label.max()))
        for records in sets
        if records is not None and records.n_samples
    )


def fit_label_model(
    records: Records, folds: BinIndex, *, n_classes: int, top_k: Iterable[int]
) -> dict[int, LabelFit]:
    """Fit the model to the labels, cross-fit it, and return the measure of each event.

    At most 500,000 scores are learned from, those of the first samples.

    Parameters
    ----------
    records : Records
        In canonical order, which is random.
    folds : ndarray of int64, shape (n_samples,)
    n_classes : int
    top_k : iterable of int
    """
    n_learned = min(records.n_samples, MOST_SCORES // records.top_classes.shape[1])
    every = labelled_scores(records, n_classes)
    learned = every if n_learned == records.n_samples else every.take(slice(n_learned))
    groups = folds[:n_learned]
    if n_learned > MOST_UNPAIRED and groups.max() >= LEAST_PAIRED:
        groups = groups // 2
    search = _Search(learned.take(slice(MOST_TUNED)), groups[:MOST_TUNED])
    best, weights = search.run() if groups.max(initial=0) > 0 else (search.plain, {})
    alone = {best: 1.0}
    weights = weights or alone
    hits = records.hits(1)[:n_learned]
    events = min(float(learned.counts @ hits), float(learned.counts @ ~hits))
    shrinkage = min(events / ENOUGH_EVENTS, 1.0)
    scaling, axes = search.scaling(best), search.axes(best)

    def model_of(coefficients: Coefficients) -> LabelModel:
        return _model(learned.scores, scaling, axes, coefficients, shrinkage)

    def fitted_to(samples: LabelledScores, weights: Mapping[Setting, float]) -> LabelModel:
        likelihood = Likelihood(samples, scaling, axes)
        return model_of(search.averaged(weights, lambda s: likelihood.mode(search.scales(s), {})))

    whole = fitted_to(learned, weights)
    odds = whole.odds_of(every.scores, every.log_rest(scaling))
    log_odds = {k: odds.log_odds(k) for k in top_k}
    scaled = model_of({}).odds_of(every.scores, every.log_rest(scaling))
    effects = {k: values - scaled.log_odds(k) for k, values in log_odds.items()}
    for place, group in enumerate(np.unique(groups) if groups.max(initial=0) > 0 else ()):
        rows = np.flatnonzero(groups == group)
        if n_learned > MOST_TUNED:
            model = fitted_to(learned.take(groups != group), alone)
        else:
            without = partial(search.mode, place)
            model = model_of(search.averaged(weights, without))
        held = learned.take(rows)
        held_odds = model.odds_of(held.scores, held.log_rest(scaling))
        for k, values in log_odds.items():
            values[rows] = held_odds.log_odds(k)
    first = every.scores.classes[:, 0]
    counts = np.bincount(first, minlength=n_classes)
    return {
        k: LabelFit(
            whole,
            (0.0 - values).astype(np.float32),
            np.bincount(first, effects[k], n_classes) / np.maximum(counts, 1),
            counts,
        )
        for k, values in log_odds.items()
    }


def labelled_scores(records: Records, n_classes: int) -> LabelledScores:
    """Return scores and labels of records."""
    scores = recorded_scores(records, n_classes)
    log_rests, m = np.empty((records.n_samples, 0)), records.top_classes.shape[1]
    if not scores.is_complete:
        log_rests = np.concatenate(
            [recorded_log_rest(records, t, n_classes, m) for t in TEMPERATURES], axis=1
        )
    label_log_p = np.maximum(records.label_log_probability, np.log(LEAST))
    counts = effective_weights(records.hits(1), records.design)
    return LabelledScores(scores, log_rests, records.label, label_log_p, counts)


class _Search:
    """The search for the best setting, by folds of some samples."""

    def __init__(self, samples: LabelledScores, groups: BinIndex) -> None:
        self._samples, self._groups = samples, groups
        few = not samples.scores.is_complete or samples.scores.n_classes == BINARY
        self._grids = {name: GRIDS[name] for name in (OF_TOP if few else GRIDS)}
        self._scores: dict[Setting, float] = {}
        self._modes: dict[Setting, list[dict[str, Floats]]] = {}
        self._scaling = cache(lambda floor: fit_temperature(samples, floor))
        self._axes = cache(lambda floor: Likelihood(samples, self._scaling(floor)[0]).axes)
        self._folds = cache(lambda floor: list(self._split(floor)))
        self.plain: Setting = (0.0,) * len(self._grids)

    def scaling(self, setting: Setting) -> Scaling:
        """Return temperature and floor of a setting."""
        return self._scaling(setting[0])[0]

    def axes(self, setting: Setting) -> Axes | None:
        """Return the axes of a setting."""
        return self._axes(setting[0])

    def scales(self, setting: Setting) -> dict[str, float]:
        """Return the prior scales of the terms that a setting uses."""
        names = tuple(self._grids)[1:]
        return {name: s for name, s in zip(names, setting[1:], strict=True) if s > 0.0}

    def mode(self, fold: int, setting: Setting) -> dict[str, Floats]:
        """Return the coefficients of a setting without a fold."""
        return self._modes[setting][fold]

    def averaged(
        self, weights: Mapping[Setting, float], mode: Callable[[Setting], Coefficients]
    ) -> dict[str, Floats]:
        """Return the mean of the coefficients of some settings."""
        mean: dict[str, Floats] = {}
        for setting, weight in weights.items():
            for term, values in mode(setting).items():
                mean[term] = mean.get(term, np.zeros(1)) + weight * values
        return mean

    def run(self) -> tuple[Setting, dict[Setting, float]]:
        """Return the best setting, and the weights of those near it that share its floor."""
        best = (self._least_floor(), *self.plain[1:])
        for sweep in range(SWEEPS):
            before = best
            for place, grid in enumerate(self._grids.values()):
                best = self._along(best, place, grid, every=sweep == 0 and place > 0)
            if best == before:
                break
        top = self._score(best)
        near = {s: np.exp(v - top) for s, v in self._scores.items() if s[0] == best[0]}
        near = {s: weight for s, weight in near.items() if weight > np.exp(-NEAR)}
        total = sum(near.values())
        return best, {s: float(weight / total) for s, weight in near.items()}

    def _least_floor(self) -> float:
        """Return the floor of largest likelihood by itself; larger ones must gain a nat."""
        best = 0.0
        for floor in FLOORS:
            if self._scaling(floor)[1] < self._scaling(best)[1] - LEAST_GAIN:
                best = floor
        return best

    def _along(self, best: Setting, place: int, grid: Sequence[float], *, every: bool) -> Setting:
        """Return the best setting along a grid: all of it, or one step to either side."""
        at = grid.index(best[place])
        for value in grid if every else grid[max(at - 1, 0) : at + 2]:
            setting = (*best[:place], value, *best[place + 1 :])
            if self._score(setting) > self._score(best):
                best = setting
            elif every and self._score(setting) < self._score(best) - HOPELESS:
                break
        return best

    def _score(self, setting: Setting) -> float:
        if setting not in self._scores:
            folds, scales = self._folds(setting[0]), self.scales(setting)
            near = max(self._modes, key=lambda known: _agree(known, setting), default=None)
            starts = self._modes[near] if near is not None else [{} for _ in folds]
            modes = [fit.mode(scales, start) for (fit, _), start in zip(folds, starts, strict=True)]
            loss = sum(held.loss(mode) for (_, held), mode in zip(folds, modes, strict=True))
            steps = zip(self._grids.values(), setting, strict=True)
            self._modes[setting] = modes
            self._scores[setting] = -loss - STEP_COST * sum(g.index(v) for g, v in steps)
        return self._scores[setting]

    def _split(self, floor: float) -> Iterator[tuple[Likelihood, Likelihood]]:
        scaling, axes = self._scaling(floor)[0], self._axes(floor)
        for group in np.unique(self._groups):
            held = self._groups == group
            parts = (self._samples.take(rows) for rows in (~held, held))
            fit, judged = (Likelihood(part, scaling, axes) for part in parts)
            yield fit, judged


def _agree(one: Setting, other: Setting) -> int:
    return sum(a == b for a, b in zip(one, other, strict=True))


def fit_temperature(samples: LabelledScores, floor: float) -> tuple[Scaling, float]:
    """Return the temperature of largest likelihood with a floor, and the loss.

    Its logarithm has a standard normal prior, so that predictions that are all right do not get
    the lowest temperature.
    """

    def loss(log_temperature: float) -> float:
        scaling = Scaling(float(np.exp(log_temperature)), floor)
        u, _ = samples.scaled(scaling)
        return float(-samples.label_u(scaling, u) @ samples.counts + log_temperature**2 / 2.0)

    candidates = np.log(TEMPERATURES)
    if samples.scores.is_complete:
        ends = (candidates[0], candidates[-1])
        found = scipy.optimize.minimize_scalar(
            loss, bounds=ends, method="bounded", options={"xatol": 1e-2}
        )
        return Scaling(float(np.exp(found.x)), floor), float(found.fun)
    losses = [loss(float(candidate)) for candidate in candidates]
    best = int(np.argmin(losses))
    return Scaling(float(TEMPERATURES[best]), floor), losses[best]


def _model(
    scores: ClassScores,
    scaling: Scaling,
    axes: Axes | None,
    coefficients: Coefficients,
    shrinkage: float,
) -> LabelModel:
    """Return the model on ``u`` itself instead of the axes."""
    n_classes = scores.n_classes
    terms = {name: shrinkage * values for name, values in coefficients.items()}
    offset = terms.get("offset", np.zeros(n_classes))
    mixing = np.empty((0, 0))
    if axes is not None and "mixing" in terms:
        mixing = axes.turn @ terms["mixing"]
        offset = offset - axes.centre @ mixing
    return LabelModel(
        n_recorded=scores.classes.shape[1],
        temperature=scaling.temperature,
        floor=scaling.floor,
        offset=offset,
        slope=terms.get("slope", np.zeros(n_classes)),
        mixing=mixing,
        confusion=terms.get("confusion", np.empty((0, 0))),
    )
