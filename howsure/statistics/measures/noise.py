"""Noise for the passes of a model: a function of seed, pass and site only.

Philox is a counter-based generator. Its key is the seed and the number of the pass, and the last
word of its counter is the site. Streams therefore never overlap, and each is drawn independently.
Only the raw words come from numpy, which guarantees them; numpy may change the distributions of
`numpy.random.Generator`.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats

LARGEST_WORD = 2**64 - 1


def keep_mask(
    shape: tuple[int, ...], *, rate: float, seed: int, number: int, site: int
) -> NDArray[np.float32]:
    """Return a mask for inverted dropout: 0 or ``1 / (1 - rate)``, with mean 1.

    Parameters
    ----------
    shape : tuple of int
        Filled in C order: arrays of the same size hold the same values.
    rate : float
        Probability of a 0, ``0 <= rate < 1``.
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
    # 24 bits are exact in float32, so no value rounds up to 1.
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
