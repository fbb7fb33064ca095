"""Noise that a pass feeds to a model: the same for the same seed, pass and site, wherever drawn.

Philox counts: its key is the seed and the number of the pass, the last word of its counter the
site, so that no two streams overlap and each is drawn without the others. Only the raw words are
numpy's, which it promises never to change; what `numpy.random.Generator` makes of them it may.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats

LARGEST_WORD = 2**64 - 1


def keep_mask(
    shape: tuple[int, ...], *, rate: float, seed: int, number: int, site: int
) -> NDArray[np.float32]:
    """Return what inverted dropout multiplies by: 0 or, on average 1, ``1 / (1 - rate)``.

    Parameters
    ----------
    shape : tuple of int
        The draw runs through it in C order: an array of another shape and the same size holds the
        same values.
    rate : float
        Chance of a 0, ``0 <= rate < 1``.
    seed, number, site : int
        Of the noise, the pass (from 0) and the place in the graph; each ``0 <= n < 2**64``.

    Returns
    -------
    ndarray of float32

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"rate must lie in [0, 1), not {rate}")
    kept = _uniform(prod(shape), seed, number, site) >= rate
    return np.where(kept, np.float32(1.0 / (1.0 - rate)), np.float32(0.0)).reshape(shape)


def uniform(shape: tuple[int, ...], *, seed: int, number: int, site: int) -> NDArray[np.float32]:
    """Return uniform draws from [0, 1); parameters as those of `keep_mask`."""
    # 24 bits: float32 holds them as they are, so none rounds up to 1.
    words = _words(prod(shape), seed, number, site) >> np.uint64(40)
    return np.ldexp(words.astype(np.float32), -24).reshape(shape)


def normal(shape: tuple[int, ...], *, seed: int, number: int, site: int) -> NDArray[np.float32]:
    """Return standard normal draws; parameters as those of `keep_mask`.

    Box and Muller 1958: two uniform numbers give the length and the angle of two normal ones.
    """
    size = prod(shape)
    pairs = _uniform(size + size % 2, seed, number, site).reshape(-1, 2)
    length = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))
    angle = 2.0 * np.pi * pairs[:, 1]
    draws = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1)
    return draws.ravel()[:size].astype(np.float32).reshape(shape)


def _uniform(size: int, seed: int, number: int, site: int) -> Floats:
    return np.ldexp((_words(size, seed, number, site) >> np.uint64(11)).astype(np.float64), -53)


def _words(size: int, seed: int, number: int, site: int) -> NDArray[np.uint64]:
    for name, value in (("seed", seed), ("number", number), ("site", site)):
        if not 0 <= value <= LARGEST_WORD:
            raise ValueError(f"{name} must lie in [0, 2**64), not {value}")
    stream = np.random.Philox(
        key=np.array([seed, number], dtype=np.uint64),
        counter=np.array([0, 0, 0, site], dtype=np.uint64),
    )
    return np.asarray(stream.random_raw(size), dtype=np.uint64)
