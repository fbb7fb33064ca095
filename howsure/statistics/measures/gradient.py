"""Gradients of a model's confidence and of its logits by its input, from finite differences."""

from collections.abc import Callable
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.statistics.arrays import Floats, Logits, as_scores
from howsure.statistics.measures.noise import normal


def is_exact(shape: tuple[int, ...], n_directions: int) -> bool:
    """Return whether there is a direction for each value of a sample."""
    return prod(shape) <= n_directions


def directions(
    shape: tuple[int, ...], *, n_directions: int, seed: int, site: int
) -> NDArray[np.float32]:
    """Return the directions of the differences, the same for every sample.

    Parameters
    ----------
    shape : tuple of int
        Of one sample.
    n_directions : int
        At least 1.
    seed, site : int
        Of the noise; the index of a direction is used as the number of the pass.

    Returns
    -------
    ndarray of float32, shape (m, *shape)
        The ``m = prod(shape)`` coordinates if that is at most ``n_directions``, otherwise
        ``n_directions`` Gaussian vectors.

    Raises
    ------
    ValueError
        If a sample has no value, or there is no direction.
    """
    if prod(shape) < 1 or n_directions < 1:
        raise ValueError(
            f"shape and n_directions must be at least 1, not {shape} and {n_directions}"
        )
    if is_exact(shape, n_directions):
        return np.eye(prod(shape), dtype=np.float32).reshape(-1, *shape)
    return gaussian_directions(shape, n_directions=n_directions, seed=seed, site=site)


def gaussian_directions(
    shape: tuple[int, ...], *, n_directions: int, seed: int, site: int
) -> NDArray[np.float32]:
    """Return ``n_directions`` Gaussian vectors, even for samples with fewer values.

    Parameters and shape as those of `directions`.
    """
    return np.stack(
        [normal(shape, seed=seed, number=number, site=site) for number in range(n_directions)]
    )


def slopes(plus: ArrayLike, minus: ArrayLike, *, distance: float) -> Floats:
    """Return ``(||p(x+)||_2 - ||p(x-)||_2) / distance``: the slope along one direction.

    It is computed from ``1 - sum p^2``, using tails, because both norms round to 1 for a confident
    prediction.

    Parameters
    ----------
    plus, minus : array_like of float, shape (n_samples, n_classes)
        Logits or ``log p`` of the samples moved in both senses of the direction.
    distance : float
        Between the two, in units of the direction's length.

    Returns
    -------
    ndarray of float64, shape (n_samples,)

    Raises
    ------
    ValueError
        If scores are invalid, shapes differ, or the distance is not above 0.
    """
    forth, back = _ends(plus, minus, distance)
    missing, missing_back = _missing_square(forth), _missing_square(back)
    sum_of_norms = np.sqrt(1.0 - missing) + np.sqrt(1.0 - missing_back)
    difference: Floats = missing_back - missing
    return difference / (sum_of_norms * distance)


def logit_slopes(plus: ArrayLike, minus: ArrayLike, *, distance: float) -> Floats:
    """Return ``(f(x+) - f(x-)) / distance``, shape (n_samples, n_classes), of the logits.

    The slope of a class that is ruled out at either end is 0. Parameters and errors are those of
    `slopes`.
    """
    forth, back = _ends(plus, minus, distance)
    is_possible = np.isfinite(forth) & np.isfinite(back)
    rise: Floats = np.where(is_possible, forth, 0.0) - np.where(is_possible, back, 0.0)
    return rise / distance


def _ends(plus: ArrayLike, minus: ArrayLike, distance: float) -> tuple[Logits, Logits]:
    forth, back = as_scores(plus, name="plus"), as_scores(minus, name="minus")
    if forth.shape != back.shape:
        raise ValueError(f"minus must have the shape {forth.shape} of plus, not {back.shape}")
    if not 0.0 < distance < np.inf:
        raise ValueError(f"distance must be above 0 and finite, not {distance}")
    return forth, back


def gradient_norm(slopes: Floats, *, exact: bool) -> Floats:
    """Return the norm of the gradient: *Empirical Confidence Estimates*, Tables 1 and 2.

    Parameters
    ----------
    slopes : ndarray of float64, shape (n_samples, m)
        Along each direction.
    exact : bool
        Whether the directions are the coordinates, ``sqrt(sum d^2)``. Otherwise they are Gaussian
        and the answer ``sqrt(mean d^2)``: its square is unbiased, and its own relative deviation
        about ``1 / sqrt(2 m)``.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    squares: Floats = np.square(slopes)
    total: Floats = squares.sum(axis=1)
    return np.sqrt(total if exact else total / slopes.shape[1])


def jacobian_norm(slopes: Floats, *, exact: bool) -> Floats:
    """Return the largest row norm of the logits' Jacobian, ``max_k ||grad f_k||_2``.

    *Empirical Confidence Estimates*, eq. 12. The norm of each row is that of `gradient_norm`; the
    maximum of noisy norms lies above the true one on average.

    Parameters
    ----------
    slopes : ndarray of float64, shape (n_samples, m, n_classes)
        Of each logit along each direction.
    exact : bool
        As in `gradient_norm`.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    largest: Floats = gradient_norm(slopes, exact=exact).max(axis=1)
    return largest


class _Norm(Protocol):
    def __call__(self, slopes: Floats, *, exact: bool) -> Floats: ...


class SlopeMeasure(NamedTuple):
    """A measure from slopes: ``slopes(plus, minus, distance=...)``, and the norm of all of them."""

    slopes: Callable[..., Floats]
    norm: _Norm


SLOPE_MEASURES = {
    "gradient_norm": SlopeMeasure(slopes, gradient_norm),
    "jacobian_norm": SlopeMeasure(logit_slopes, jacobian_norm),
}


def _missing_square(scores: Logits) -> Floats:
    """Return ``1 - sum p^2`` from positive terms alone, shape (n_samples,).

    With ``t`` the sum of the others than the top class, it is ``2 t (1 - t) + t^2 - sum others^2``,
    and the difference of squares is the sum of products of two others: never negative.
    """
    top = scores.argmax(axis=1)[:, np.newaxis]
    with np.errstate(over="ignore"):  # finite logits further apart than float64 reaches: -inf
        others = np.exp(scores - np.take_along_axis(scores, top, axis=1))
    np.put_along_axis(others, top, 0.0, axis=1)
    rest: Floats = others.sum(axis=1)
    products: Floats = np.square(rest) - np.square(others).sum(axis=1)
    return (2.0 * rest + products) / np.square(1.0 + rest)
