"""What the noise inputs of a graph take: nothing that changes the answer, or a pass's draws."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from service.core.passes.noise import keep_mask, normal, uniform
from service.errors import InvalidOnnxModel
from service.graph.noise_site import NoiseSite
from service.model_rules import ModelRule
from service.runner.child.onnx_session import OnnxSession
from service.runner.frames import Array

MAX_LAYOUTS = 64  # of texts of different lengths, for instance
MAX_KEPT_BYTES = 2**26


@dataclass(frozen=True)
class Layout:
    """How the noise of a site lies: that of one row, and the axis along which rows follow.

    ``shape[axis]`` is what one row takes of that axis; None where rows share the tensor.
    """

    shape: tuple[int, ...]
    axis: int | None

    def for_rows(self, noise: Array, n_rows: int) -> Array:
        """Return the noise of one row as all rows take it."""
        if self.axis is None or self.shape[self.axis] == 1:
            return noise  # the graph spreads it over the rows
        return np.concatenate([noise] * n_rows, axis=self.axis)


class NoiseFeeds:
    """Draws the noise of a graph's sites, the same for all rows of a pass.

    What a row's noise looks like is seen by running the graph on one row and on two: the axis
    that doubles is that of the rows. A graph of fixed batch shows it on the first axis that the
    batch divides.
    """

    def __init__(
        self,
        session: OnnxSession,
        sites: Sequence[NoiseSite],
        *,
        seed: int,
        fixed_batch: int | None,
    ) -> None:
        self._session = session
        self._sites = sites
        self._seed = seed
        self._fixed_batch = fixed_batch
        self._layouts: OrderedDict[tuple[object, ...], list[Layout]] = OrderedDict()
        self._drawn: dict[tuple[int, int, Layout], Array] = {}
        self._drawn_bytes = 0

    def quiet(self) -> dict[str, Array]:
        """Return noise that leaves the model's own answer."""
        return quiet_feeds(self._sites)

    def of_pass(self, rows: Mapping[str, Array], number: int, place: str) -> dict[str, Array]:
        """Return the noise of a pass for these rows.

        Raises
        ------
        InvalidOnnxModel
            If rows do not follow along one axis where the noise belongs.
        """
        n_rows = len(next(iter(rows.values())))
        layouts = self._layouts_of(rows, place)
        return {
            site.name: layout.for_rows(self._noise(index, number, layout), n_rows)
            for index, (site, layout) in enumerate(zip(self._sites, layouts, strict=True))
        }

    def _noise(self, index: int, number: int, layout: Layout) -> Array:
        key = (index, number, layout)
        if key in self._drawn:
            return self._drawn[key]
        noise = _draw(self._sites[index], layout.shape, self._seed, number, index)
        if self._drawn_bytes + noise.nbytes <= MAX_KEPT_BYTES:
            self._drawn[key] = noise
            self._drawn_bytes += noise.nbytes
        return noise

    def _layouts_of(self, rows: Mapping[str, Array], place: str) -> list[Layout]:
        key = tuple(sorted((name, array.shape[1:]) for name, array in rows.items()))
        if key not in self._layouts:
            self._layouts[key] = self._look(rows, place)
            while len(self._layouts) > MAX_LAYOUTS:
                self._layouts.popitem(last=False)
                self._drawn.clear()
                self._drawn_bytes = 0
        return self._layouts[key]

    def _look(self, rows: Mapping[str, Array], place: str) -> list[Layout]:
        if self._fixed_batch is not None:
            return [
                _of_fixed_batch(shape, self._fixed_batch) if site.of_rows else Layout(shape, None)
                for site, shape in zip(self._sites, self._shapes(rows, place), strict=True)
            ]
        one = {name: array[:1] for name, array in rows.items()}
        two = {name: np.concatenate([array, array]) for name, array in one.items()}
        pairs = zip(self._shapes(one, place), self._shapes(two, place), strict=True)
        return [_of_two(*pair) for pair in pairs]

    def _shapes(self, rows: Mapping[str, Array], place: str) -> list[tuple[int, ...]]:
        names = [site.shape_output for site in self._sites]
        shapes = self._session.run(names, {**rows, **self.quiet()}, place=place)
        return [tuple(shapes[name].tolist()) for name in names]


def quiet_feeds(sites: Sequence[NoiseSite]) -> dict[str, Array]:
    """Return noise that leaves the model's own answer."""
    return {site.name: np.full(1, site.quiet, dtype=np.float32) for site in sites}


def _of_two(one: tuple[int, ...], two: tuple[int, ...]) -> Layout:
    """Compare the shapes that one row and two rows have at a site."""
    if len(one) == len(two):
        grown = [axis for axis, sizes in enumerate(zip(one, two, strict=True)) if len({*sizes}) > 1]
        if not grown:
            return Layout(one, None)
        if len(grown) == 1 and two[grown[0]] == 2 * one[grown[0]]:
            return Layout(one, grown[0])
    raise _unclear(f"{list(one)} for one row and {list(two)} for two")


def _of_fixed_batch(shape: tuple[int, ...], batch: int) -> Layout:
    if batch == 1:
        return Layout(shape, None)
    for axis, size in enumerate(shape):
        if size % batch == 0:
            return Layout((*shape[:axis], size // batch, *shape[axis + 1 :]), axis)
    raise _unclear(f"{list(shape)} for a batch of {batch}")


def _unclear(found: str) -> InvalidOnnxModel:
    return InvalidOnnxModel.because(
        ModelRule.NOISE,
        "noise is drawn for one row and used for all, so rows must follow along one axis where a "
        f"Dropout or random node stands; there the shape is {found}",
    )


def _draw(site: NoiseSite, shape: tuple[int, ...], seed: int, number: int, index: int) -> Array:
    if prod(shape) == 0:
        return np.zeros(shape, dtype=np.float32)
    match site.kind:
        case "keep":
            return keep_mask(shape, rate=site.rate, seed=seed, number=number, site=index)
        case "normal":
            return normal(shape, seed=seed, number=number, site=index)
        case "uniform":
            return uniform(shape, seed=seed, number=number, site=index)
