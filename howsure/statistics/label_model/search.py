"""The search for the prior scales and the floor of the model of the labels.

Neither is known beforehand. The search visits settings of them one step at a time and scores each
by cross-validated likelihood, less what makes a richer setting less likely beforehand. Settings
that are nearly as good as the best are averaged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
import scipy  # its parts are imported when first used

from howsure.statistics.arrays import BinIndex, Floats
from howsure.statistics.label_model.class_scores import LEAST
from howsure.statistics.label_model.likelihood import (
    Axes,
    Coefficients,
    LabelledScores,
    Likelihood,
    Scaling,
)
from howsure.statistics.records.records import TEMPERATURES, USUAL
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
STEP_COST = 1.5  # nats of a floor, and of each step up another grid
SWEEPS = 3
# Nats below the best: a grid is left, and a setting is averaged.
HOPELESS, NEAR = 3.0, 4.0
UNSEEN = 0.25  # of a label; half of one made small sets worse
LEAST_GAIN = 1.0  # nats, of a floor by itself

Setting: TypeAlias = tuple[float, ...]


class Search:
    """The search for the best setting, by folds of some samples."""

    def __init__(self, samples: LabelledScores, groups: BinIndex) -> None:
        self._samples, self._groups = samples, groups
        self._rules_out = samples.scores.rules_out
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
        # A floor may replace what other terms do better: so the search starts without one, too.
        starts = dict.fromkeys((0.0, self._least_floor()))
        best = max((self._best_from(floor) for floor in starts), key=self._score)
        top = self._score(best)
        near = {s: np.exp(v - top) for s, v in self._scores.items() if s[0] == best[0]}
        near = {s: weight for s, weight in near.items() if weight > np.exp(-NEAR)}
        total = sum(near.values())
        return best, {s: float(weight / total) for s, weight in near.items()}

    def _best_from(self, floor: float) -> Setting:
        """Return the best setting found from a floor by itself."""
        best = (floor, *self.plain[1:])
        for sweep in range(SWEEPS):
            before = best
            for place, grid in enumerate(self._grids.values()):
                if sweep > 0 or place > 0:
                    best = self._along(best, place, grid, every=sweep == 0)
            if best == before:
                break
        return best

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
            near = max(self._modes, key=lambda visited: _agree(visited, setting), default=None)
            starts = self._modes[near] if near is not None else [{} for _ in folds]
            modes = [fit.mode(scales, start) for (fit, _), start in zip(folds, starts, strict=True)]
            loss = sum(held.loss(mode) for (_, held), mode in zip(folds, modes, strict=True))
            others = list(zip(self._grids.values(), setting, strict=True))[1:]
            steps = (setting[0] > 0.0) + sum(grid.index(value) for grid, value in others)
            self._modes[setting] = modes
            loss += self._rules_out * _unseen_loss(self.scaling(setting))
            self._scores[setting] = -loss - STEP_COST * steps
        return self._scores[setting]

    def _split(self, floor: float) -> Iterator[tuple[Likelihood, Likelihood]]:
        scaling, axes = self._scaling(floor)[0], self._axes(floor)
        for group in np.unique(self._groups):
            held = self._groups == group
            parts = (self._samples.take(rows) for rows in (~held, held))
            fit, out = (Likelihood(part, scaling, axes) for part in parts)
            yield fit, out


def _unseen_loss(scaling: Scaling) -> float:
    """Return the loss of a part of a label that the model rules out, as votes and trees may."""
    return -UNSEEN * float(np.log(max(scaling.floor, LEAST))) / scaling.temperature


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
        prior = log_temperature**2 / 2.0 + samples.scores.rules_out * _unseen_loss(scaling)
        return float(prior - samples.label_u(scaling, u) @ samples.counts)

    if samples.scores.is_complete:
        ends = np.log([TEMPERATURES.min(), TEMPERATURES.max()])
        minimum = scipy.optimize.minimize_scalar(
            loss, bounds=ends, method="bounded", options={"xatol": 1e-2}
        )
        return Scaling(float(np.exp(minimum.x)), floor), float(minimum.fun)
    candidates = np.log(TEMPERATURES[: samples.log_rests.shape[1]])
    losses = [loss(float(candidate)) for candidate in candidates[:USUAL]]
    if int(np.argmin(losses)) in (0, USUAL - 1):
        losses += [loss(float(candidate)) for candidate in candidates[USUAL:]]
    best = int(np.argmin(losses))
    return Scaling(float(TEMPERATURES[best]), floor), losses[best]
