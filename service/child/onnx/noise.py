"""Values for the noise inputs of a graph: neutral ones, or the random draws of a pass."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from howsure.bins_document.pass_plan import LAST_LAYER, PassPlan
from howsure.outputs import OutputKind
from howsure.statistics.arrays import Floats
from howsure.statistics.measures.noise import keep_mask, normal, uniform
from service.child.onnx.batches import log_probabilities, padded
from service.child.onnx.session import OnnxSession
from service.errors import InvalidOnnxModel, ModelRule, TooLarge
from service.graph.description import NoiseSite
from service.graph.serving import SCORES
from service.runner.messages.frames import Array

MAX_LAYOUTS = 64  # for example for texts of different lengths
MAX_KEPT_BYTES = 2**26


@dataclass(frozen=True)
class Layout:
    """The shape of a site's noise for one row, and the axis along which rows follow one another.

    ``shape[axis]`` is the size of one row on that axis; ``axis`` is None if rows share the tensor.
    """

    shape: tuple[int, ...]
    axis: int | None

    def for_rows(self, noise: Array, n_rows: int) -> Array:
        """Return the noise of one row, repeated for all rows."""
        if self.axis is None or self.shape[self.axis] == 1:
            return noise  # the graph spreads it over the rows
        return np.concatenate([noise] * n_rows, axis=self.axis)


@dataclass(eq=False, repr=False)
class NoiseFeeds:
    """Draws the noise of a graph's sites, the same for all rows of a pass.

    The graph is run on one row and on two rows: the axis that doubles is that of the rows. For a
    fixed batch it is the first axis that the batch size divides.
    """

    session: OnnxSession
    sites: Sequence[NoiseSite]
    _: KW_ONLY
    seed: int
    fixed_batch: int | None

    def __post_init__(self) -> None:
        self._layouts: OrderedDict[tuple[object, ...], list[Layout]] = OrderedDict()
        self._drawn: dict[tuple[int, int, Layout], Array] = {}
        self._drawn_bytes = 0

    def neutral(self) -> dict[str, Array]:
        """Return noise that does not change the model's answer."""
        return neutral_feeds(self.sites)

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
            for index, (site, layout) in enumerate(zip(self.sites, layouts, strict=True))
        }

    def _noise(self, index: int, number: int, layout: Layout) -> Array:
        key = (index, number, layout)
        if key in self._drawn:
            return self._drawn[key]
        noise = _draw(self.sites[index], layout.shape, self.seed, number, index)
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
        if self.fixed_batch is not None:
            return [
                _of_fixed_batch(shape, self.fixed_batch)
                if site.depends_on_rows
                else Layout(shape, None)
                for site, shape in zip(self.sites, self._shapes(rows, place), strict=True)
            ]
        one = {name: array[:1] for name, array in rows.items()}
        two = {name: np.concatenate([array, array]) for name, array in one.items()}
        pairs = zip(self._shapes(one, place), self._shapes(two, place), strict=True)
        return [_of_two(*pair) for pair in pairs]

    def _shapes(self, rows: Mapping[str, Array], place: str) -> list[tuple[int, ...]]:
        names = [site.shape_output for site in self.sites]
        shapes = self.session.run(names, {**rows, **self.neutral()}, place=place)
        return [tuple(shapes[name].tolist()) for name in names]


def neutral_feeds(sites: Sequence[NoiseSite]) -> dict[str, Array]:
    """Return noise that does not change the model's answer."""
    return {site.name: np.full(1, site.neutral, dtype=np.float32) for site in sites}


@dataclass(frozen=True, eq=False)
class StochasticPasses:
    """Runs of one graph with the noise of each pass."""

    noise: NoiseFeeds
    kind: OutputKind
    passes: int

    def log_probabilities(self, rows: Mapping[str, Array], place: str) -> Iterator[Floats]:
        """Yield each pass's log-probabilities."""
        for number in range(self.passes):
            feeds = {**rows, **self.noise.of_pass(rows, number, place)}
            scores = self.noise.session.run([SCORES], feeds, place=place)[SCORES]
            yield log_probabilities(scores, self.kind)


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


LEAST_LOG = -50.0  # smaller logarithms are not compared
MOST_ROUNDED = 2e-3  # of a logarithm, by half precision
SHARE_OF_SPREAD = 0.1


def check_same_noise(
    passes: Callable[[Mapping[str, Array]], Floats],
    rows: Mapping[str, Array],
    fixed_batch: int | None,
) -> None:
    """Refuse a graph in which copies of the first row get different noise.

    Parameters
    ----------
    passes
        Returns the log-probabilities of a few passes, shape (n_rows, passes, n_classes).

    Raises
    ------
    InvalidOnnxModel
        If an answer would depend on the place of a row in its batch.
    """
    n_copies = fixed_batch or 2
    if n_copies == 1:
        return
    copies = {name: padded(array[:1], 0, n_copies) for name, array in rows.items()}
    logs = np.maximum(passes(copies), LEAST_LOG)
    if np.isnan(logs).any():
        return  # another check refuses a row without an answer, by its number
    apart = np.abs(logs - logs[:1]).max()
    spread = np.abs(logs[0] - logs[0, :1]).max()
    rounded = MOST_ROUNDED * (1.0 + np.abs(logs).max())
    if apart > rounded + SHARE_OF_SPREAD * spread:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            "noise is drawn for one row and used for all, but where a Dropout or random node of "
            "this model stands, the rows of a batch do not follow one another along one axis, or "
            "its noise has a fixed shape for all of them; export it with a dynamic batch axis, the "
            "first, or with a batch of 1",
        )


USUAL_RATE = 0.1  # before a last layer that was trained without dropout
LEAST_PASSES = 2
MOST_NUMBERS = 2**25  # masks are constants of the graph, in one file with its weights


def check_masks(plan: PassPlan) -> None:
    """Refuse more masks than a graph can hold.

    Raises
    ------
    TooLarge
        With the number of passes that would fit.
    """
    shape = plan.feature_shape or ()
    most = MOST_NUMBERS // max(prod(shape), 1)
    if plan.passes <= most:
        return
    sizes = "x".join(map(str, shape))
    fits = f"at most {most} passes" if most >= LEAST_PASSES else f"{LAST_LAYER} to be left out"
    raise TooLarge.at(
        "config.dropout.passes",
        f"{LAST_LAYER}: the last layer takes {sizes} values of a sample, which {plan.passes:,} "
        f"masks of that size make too many for one graph; expected {fits}",
    )


def last_layer_masks(plan: PassPlan) -> NDArray[np.float32]:
    """Return the masks of the features in each pass, shape (passes, *feature_shape).

    They equal the masks of the first Dropout node of full dropout, so that both measures agree if
    the model has no other one.
    """
    shape = plan.feature_shape or ()
    rate = plan.rate or USUAL_RATE
    masks = [
        keep_mask(shape, rate=rate, seed=plan.seed, number=number, site=0)
        for number in range(plan.passes)
    ]
    return np.stack(masks)
