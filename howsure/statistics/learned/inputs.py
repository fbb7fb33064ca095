"""Inputs of the learned measure: four logarithms of what the model's head computes."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Uncertainty
from howsure.statistics.records.records import TEMPERATURES
from howsure.statistics.softmax import LEAST_TOP, MOST_COMPLETE, RankedScores

LEAST = 1e-37
# The records know the mass beyond the first k > 1 classes at a temperature only to about 1e-7.
LEAST_SCALED = 1e-6
_COLUMN = re.compile(r"log_rest_(\d+)(?:_at_(\d+))?")


def rest_column(k: int, temperature: int) -> str:
    """Return the name of the log-odds against the ``k`` top classes at a temperature."""
    return f"log_rest_{k}_at_{temperature}"


def input_columns(k: int, temperature: int) -> tuple[str, str, str, str]:
    """Return the names of the inputs for the Top-k event, in the order of `LearnedModel`.

    With ``e_i = p_i / p_(1)`` and the classes ranked: the log-odds against the ``k`` top classes,
    ``log(sum_{i > k} e_i / sum_{i <= k} e_i)``, of ``e^(1 / T)`` and of ``e``; the logarithm of the
    entropy; and ``log e_(2)``. Each is at least about -85.

    Parameters
    ----------
    k : int
    temperature : int
        Index of ``T`` in `TEMPERATURES`.
    """
    return (rest_column(k, temperature), f"log_rest_{k}", "log_entropy", "log_second")


def least_rest(k: int, temperature: int | None) -> float:
    """Return the bound of the ratio whose logarithm a column holds."""
    return LEAST if k == 1 or temperature is None else LEAST_SCALED


def parse_rest(column: str) -> tuple[int, int | None] | None:
    """Return k and the temperature's index of a ``log_rest`` column; None for other columns."""
    found = _COLUMN.fullmatch(column)
    if found is None:
        return None
    k, temperature = found.groups()
    return int(k), None if temperature is None else int(temperature)


def n_read_classes(n_classes: int, columns: Iterable[str]) -> int:
    """Return how many top classes the formulas with these input columns read, at least ten or all.

    Records may have more, as many as the events need.
    """
    if n_classes <= MOST_COMPLETE:
        return n_classes
    rests = [rest[0] for rest in map(parse_rest, columns) if rest is not None]
    return max([LEAST_TOP, *rests])


def is_input(column: str) -> bool:
    """Tell whether a column is an input of the learned measure, and no measure itself."""
    return column in {"log_entropy", "log_second"} or parse_rest(column) is not None


def ranked_inputs(
    ranked: RankedScores, columns: Iterable[str], measured: Mapping[str, Uncertainty]
) -> dict[str, NDArray[np.float32]]:
    """Return the columns that are inputs, of scores, float32 of shape (n_samples,) each.

    Parameters
    ----------
    ranked : RankedScores
    columns : iterable of str
        Others are left out.
    measured : mapping of str to ndarray of float32
        The measures of the same scores.
    """
    found: dict[str, Floats] = {}
    for name in columns:
        rest = parse_rest(name)
        if rest is not None:
            k, temperature = rest
            ratio = _rest_ratio(ranked, k, temperature)
            found[name] = np.log(np.maximum(ratio, least_rest(k, temperature)))
        elif name == "log_entropy":
            found[name] = np.log(np.maximum(measured["entropy"].astype(np.float64), LEAST))
        elif name == "log_second":
            second = np.take_along_axis(ranked.relative, ranked.top_classes[:, 1:2], axis=1)[:, 0]
            found[name] = np.maximum(second, np.log(LEAST))
    return {name: values.astype(np.float32) for name, values in found.items()}


def _rest_ratio(ranked: RankedScores, k: int, temperature: int | None) -> Floats:
    if temperature is None:
        return np.asarray(ranked.tails[:, k - 1] / ranked.heads[:, k - 1])
    weights = np.exp(ranked.relative / TEMPERATURES[temperature])
    top = ranked.top_classes[:, :k]
    head = np.take_along_axis(weights, top, axis=1).sum(axis=1)
    np.put_along_axis(weights, top, 0.0, axis=1)
    return np.asarray(weights.sum(axis=1) / head)
