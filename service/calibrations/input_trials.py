"""Trials of a model on some samples whose inputs are prepared in other ways."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import structs

from howsure.preprocessing import PRESETS, Colour, Preprocessing
from howsure.statistics.findings.evidence import Preparation, PreparationTrials
from howsure.statistics.findings.preparations import of_pictures, rearrangements, rescalings
from howsure.statistics.findings.preprocessing import FLOOR, merit
from howsure.statistics.records.records import Records
from service.child.pictures.values import model_values
from service.errors import InferenceFailed, InvalidInput
from service.runner.messages.dataset import AnyArray, Batch

FEW_TRIALS = 3  # so many run on all samples; of more, the best on the first look do
FIRST_ROWS = 64
UNIT = 1 / 255
# Scale, means and standard deviations by red, green and blue. The first three also suit grey.
NORMALISATIONS = (
    (1.0, (0.0,) * 3, (1.0,) * 3),
    (UNIT, (0.0,) * 3, (1.0,) * 3),
    (UNIT, (0.5,) * 3, (0.5,) * 3),
    *((UNIT, PRESETS[name].mean, PRESETS[name].std) for name in ("imagenet", "clip")),
)
OF_GREY = 3


def trials_of(inputs: AnyArray, asked: Preprocessing | None) -> list[Preparation]:
    """Return what to try on the only input of a model; on pixels, if ``asked`` is given."""
    if asked is None:
        return [*rescalings(inputs), *rearrangements(inputs)]
    arranged = [
        replace(how, apply=partial(_values_of_changed, change=how.apply, asked=asked))
        for how in rearrangements(inputs)
        if "channels_reversed" not in how.figures  # `colour`, below
    ]
    return [*(_otherwise_prepared(other, asked) for other in _alternatives(asked)), *arranged]


def _values_of_changed(
    pixels: AnyArray, change: Callable[[AnyArray], AnyArray], asked: Preprocessing
) -> AnyArray:
    return model_values(change(pixels), asked)


def _alternatives(asked: Preprocessing) -> list[Preprocessing]:
    """Return the common ways to scale, normalise and order the channels of pictures.

    Two that give almost the same values are one.
    """
    known = [asked]
    for other in _common(asked):
        if not any(_is_near(other, found) for found in known):
            known.append(other)
    return known[1:]


def _common(asked: Preprocessing) -> Iterator[Preprocessing]:
    # Means of 0 to 255 with a scale of 1/255, or the other way round.
    yield from (structs.replace(asked, scale=scale) for scale in (1.0, UNIT))
    if asked.colour == "grey":
        for scale, mean, std in NORMALISATIONS[:OF_GREY]:
            yield structs.replace(asked, scale=scale, mean=mean[:1], std=std[:1])
        return
    yield structs.replace(asked, colour="rgb" if asked.colour == "bgr" else "bgr")
    orders: tuple[tuple[Colour, int], ...] = (("rgb", 1), ("bgr", -1))
    for colour, step in orders:
        for scale, mean, std in NORMALISATIONS:
            yield structs.replace(
                asked, colour=colour, scale=scale, mean=mean[::step], std=std[::step]
            )


def _is_near(one: Preprocessing, other: Preprocessing) -> bool:
    same = one.colour == other.colour
    return same and np.allclose(_affine(one), _affine(other), rtol=0.01, atol=0.0)


def _affine(preprocessing: Preprocessing) -> AnyArray:
    """Return the factor and the term of each channel."""
    std = np.asarray(preprocessing.std)
    return np.stack([preprocessing.scale / std, -np.asarray(preprocessing.mean) / std])


def _otherwise_prepared(other: Preprocessing, asked: Preprocessing) -> Preparation:
    is_turned = other.colour != asked.colour
    words = []
    if other.scale != asked.scale:
        words.append(f"scale {'1/255' if other.scale == UNIT else f'{other.scale:g}'}")
    if (other.mean, other.std) != (asked.mean, asked.std):
        words += [f"mean {[*other.mean]}", f"std {[*other.std]}"]
    has_other_values = bool(words)
    words += [f"colour {other.colour}"] * is_turned
    ratios = _affine(other)[0] / _affine(asked)[0]
    is_factor = not is_turned and not any((*other.mean, *asked.mean))
    return of_pictures(
        f"{', '.join(words)} in the preprocessing",
        {
            "scale": other.scale,
            "mean": [*other.mean],
            "std": [*other.std],
            "channels_reversed": int(is_turned),
        },
        partial(model_values, preprocessing=other),
        needs_hits=not (is_factor and np.allclose(ratios, ratios[0])),
        changes=has_other_values + is_turned,
    )


def run_trials(
    record: Callable[[Batch], Records],
    rows: Batch,
    trials: Sequence[Preparation],
    *,
    name: str,
) -> PreparationTrials | None:
    """Run the model on samples as they are, and prepared in other ways.

    The samples have one array; ``name`` is the model's input. Many ways run on 64 samples first,
    and only the three best of them on all. Return None without trials, and for models that fail as
    sent or in every other way.
    """
    if not trials:
        return None
    tried = []
    with suppress(InvalidInput, InferenceFailed):
        as_sent = record(rows)
        for how in _promising(record, rows, trials, as_sent, name=name):
            with suppress(InvalidInput, InferenceFailed):
                tried.append((how, record(_prepared(rows, how, name))))
    return PreparationTrials(as_sent, tried, len(trials)) if tried else None


def _promising(
    record: Callable[[Batch], Records],
    rows: Batch,
    trials: Sequence[Preparation],
    as_sent: Records,
    *,
    name: str,
) -> Sequence[Preparation]:
    """Return the trials to run on all samples: those that do best, and better than as sent."""
    if len(trials) <= FEW_TRIALS:
        return trials
    some = slice(None, None, max(1, rows.labels.size // FIRST_ROWS))
    first = rows.rows(some)
    least = float(np.maximum(as_sent.label_log_probability[some], FLOOR).mean())
    better = []
    for how in trials:
        with suppress(InvalidInput, InferenceFailed):
            found = merit(how, record(_prepared(first, how, name)))
            if found > least:
                better.append((found, how))
    better.sort(key=lambda found: -found[0])
    return [how for _, how in better[:FEW_TRIALS]]


def _prepared(rows: Batch, how: Preparation, name: str) -> Batch:
    (inputs,) = rows.arrays.values()
    return replace(rows, arrays={name: how.apply(inputs)})
