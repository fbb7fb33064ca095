"""Inputs on another scale, told by what the model makes of the right one."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of

from howsure.statistics.findings.evidence import PreparationTrials
from howsure.statistics.findings.preparations import rescaling, rescalings

NOT_SCALED, TWICE = "inputs-not-scaled", "inputs-scaled-twice"
GARBAGE = np.random.default_rng(2).normal(size=(256, 10)) * 3.0


def tried(sent, labels, *others):
    """Trials of ways to prepare the inputs, each with the model's answers."""
    ways = [(how, records_of(other, labels)) for how, other in others]
    return PreparationTrials(records_of(sent, labels), ways)


def found_of(sent, labels, *others):
    return found_in(sent, labels, trials=tried(sent, labels, *others))


@pytest.mark.parametrize(("factor", "code"), [(1 / 255, NOT_SCALED), (255.0, TWICE)])
def test_a_scale_that_is_far_better(factor, code):
    logits, labels = calibrated(256, seed=1)
    found = found_of(GARBAGE, labels, (rescaling(factor), logits))
    figures = found[code].figures
    assert figures["factor"] == factor
    assert figures["rescaled_accuracy"] == np.mean(logits.argmax(axis=1) == labels)
    assert found.keys() & {NOT_SCALED, TWICE} == {code}


def test_a_network_that_minds_the_scale_by_its_confidence_alone():
    logits, labels = calibrated(256, seed=3)
    found = found_of(logits * 255.0, labels, (rescaling(1 / 255), logits))
    figures = found[NOT_SCALED].figures
    assert figures["accuracy"] == figures["rescaled_accuracy"]


def test_wrong_labels_do_not_hide_that_a_sure_model_is_right_far_more_often():
    """Its log-probability is below that of a constant answer, because a fifth is labelled wrong."""
    logits, labels = calibrated(256, seed=3)
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(256) < 0.2, (labels + 1) % 10, labels)
    garbage = rng.normal(size=logits.shape) * 40.0
    trials = tried(garbage, labels, (rescaling(1 / 255), logits * 6.0))
    assert trials.tried[0][1].label_log_probability.mean() < -np.log(10)
    assert NOT_SCALED in found_in(garbage, labels, trials=trials)


def test_a_scale_is_no_cure_of_permuted_labels():
    """Half of the classes are called by other names; less sure answers cost less there."""
    logits, labels = calibrated(2000, seed=3)
    permuted = np.array([*range(4), 5, 6, 7, 8, 9, 4])[labels]
    found = found_of(logits * 60.0, permuted, (rescaling(1 / 255), logits))
    assert found.keys() == {"labels-permuted"}


def test_a_scale_that_costs_hits_is_none():
    """Its answers are unsure, which is better than to be sure and wrong, but fewer are right."""
    logits, labels = calibrated(256, seed=4)
    flat = np.random.default_rng(5).normal(size=logits.shape) * 0.3
    flat[np.arange(256), labels] += 0.35
    assert not found_of(logits * 30.0, labels, (rescaling(1 / 255), flat))


def test_a_network_that_names_one_class_for_all_samples_of_a_sorted_set():
    logits, labels = calibrated(4000, seed=8)
    same = np.flatnonzero(labels == 3)[:256]
    blind = np.tile(np.where(np.arange(10) == 3, 4.0, 0.0), (len(same), 1))
    for factor in (255.0, 1 / 255):
        trials = tried(logits[same], labels[same], (rescaling(factor), blind))
        assert trials.tried[0][1].label_log_probability.mean() > -0.2
        assert not found_in(logits, labels, trials=trials).keys() & {NOT_SCALED, TWICE}


def test_a_few_rows_are_no_evidence():
    logits, labels = calibrated(10, seed=6)
    first = np.tile(np.where(np.arange(10) == 0, 9.0, 0.0), (10, 1))
    assert TWICE not in found_of(first, labels, (rescaling(255.0), logits))


# ImageNet's normalisation, and that by halves.
NORMALISED = rescalings(np.ones((1, 3, 2, 2)))[1:]


@pytest.mark.parametrize(("place", "mean"), [(0, 0.485), (1, 0.5)])
def test_the_normalisation_with_the_best_answers_is_named(place, mean):
    logits, labels = calibrated(256, seed=1)
    answers = [logits + GARBAGE / 4 * (number != place) for number in (0, 1)]
    finding = found_of(GARBAGE, labels, *zip(NORMALISED, answers, strict=True))[NOT_SCALED]
    assert finding.figures["mean"][0] == mean
    assert finding.figures["rescaled_accuracy"] == np.mean(logits.argmax(axis=1) == labels)


def test_a_normalisation_that_only_makes_the_model_less_sure_is_none():
    logits, labels = calibrated(256, seed=3)
    others = zip(NORMALISED, (logits, logits * 3.0), strict=True)
    assert not found_of(logits * 9.0, labels, *others)


def test_how_many_scales_are_tried_raises_the_bar():
    """Twelve samples won and none lost: enough for one trial at 0.1 %, not for five."""
    logits, labels = calibrated(64, seed=4, spread=9.0)
    sent = logits.copy()
    sent[:12] = -logits[:12]
    how = NORMALISED[0]
    for n_others in (0, 4):
        found = found_of(sent, labels, (how, logits), *[(how, -logits)] * n_others)
        assert (NOT_SCALED in found) == (n_others == 0)


@pytest.mark.parametrize(("inputs", "factors"), [
    ([0.0, 255.0], [1 / 255]), ([0.0, 16.0], [1 / 255]), ([0, 1, 0], [255.0]),
    ([0.0, 0.4], [255.0]), ([0.0, 1.2], []), ([0.0, 256.0], []), ([-0.1, 200.0], []),
    ([-2.1, 2.6], []), ([0.0, 0.0], []),
])  # fmt: skip
def test_which_inputs_are_looked_at_twice(inputs, factors):
    assert [found.figures["factor"] for found in rescalings(np.array(inputs))] == factors


@pytest.mark.parametrize(("shape", "axis", "most"), [
    ((2, 3, 5, 5), 1, 1.0), ((2, 5, 5, 3), 3, 255.0), ((2, 1, 5, 5), 1, 255.0),
    ((2, 5, 5, 1), 3, 1.0), ((2, 2, 5, 5), None, 1.0), ((2, 3), None, 255.0),
])  # fmt: skip
def test_pictures_are_also_normalised(shape, axis, most):
    inputs = np.random.default_rng(0).random(shape) * most
    inputs.flat[0] = most
    plain, *others = rescalings(inputs)
    assert "mean" not in plain.figures
    assert len(others) == (2 if axis else 0)
    for how in others:
        moved = np.moveaxis(how.apply(inputs), axis, -1)
        expected = (np.moveaxis(inputs, axis, -1) / most - how.figures["mean"]) / how.figures["std"]
        np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=1e-6)
