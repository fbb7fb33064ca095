"""Inputs on another scale, told by what the model makes of the right one."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of

from howsure.statistics.findings.evidence import PreparationTrials
from howsure.statistics.findings.preparations import rescaling, rescalings


def rescaled(sent, other, labels, factor):
    tried = [(rescaling(factor), records_of(other, labels))]
    return PreparationTrials(records_of(sent, labels), tried)


@pytest.mark.parametrize(
    ("factor", "code"), [(1 / 255, "inputs-not-scaled"), (255.0, "inputs-scaled-twice")]
)
def test_a_scale_that_is_far_better(factor, code):
    logits, labels = calibrated(256, seed=1)
    garbage = np.random.default_rng(2).normal(size=logits.shape) * 3.0
    found = found_in(garbage, labels, trials=rescaled(garbage, logits, labels, factor))
    figures = found[code].figures
    assert figures["factor"] == factor
    assert figures["rescaled_accuracy"] == np.mean(logits.argmax(axis=1) == labels)
    assert figures["mean_log_probability"] < figures["rescaled_mean_log_probability"]
    assert len(found.keys() & {"inputs-not-scaled", "inputs-scaled-twice"}) == 1


def test_a_network_that_minds_the_scale_by_its_confidence_alone():
    logits, labels = calibrated(256, seed=3)
    given = rescaled(logits * 255.0, logits, labels, 1 / 255)
    figures = found_in(logits * 255.0, labels, trials=given)["inputs-not-scaled"].figures
    assert figures["accuracy"] == figures["rescaled_accuracy"]


def test_wrong_labels_do_not_hide_that_a_sure_model_is_right_far_more_often():
    """Its log-probability is below that of a constant answer, because a fifth is labelled wrong."""
    logits, labels = calibrated(256, seed=3)
    rng = np.random.default_rng(5)
    given = np.where(rng.random(256) < 0.2, (labels + 1) % 10, labels)
    garbage = rng.normal(size=logits.shape) * 40.0
    trials = rescaled(garbage, logits * 6.0, given, 1 / 255)
    ((_, answers),) = trials.tried
    assert answers.label_log_probability.mean() < -np.log(10)
    assert "inputs-not-scaled" in found_in(garbage, given, trials=trials)


def test_a_scale_that_costs_hits_is_none():
    """Its answers are unsure, which is better than to be sure and wrong, but fewer are right."""
    logits, labels = calibrated(256, seed=4)
    flat = np.random.default_rng(5).normal(size=logits.shape) * 0.3
    flat[np.arange(256), labels] += 0.35
    given = rescaled(logits * 30.0, flat, labels, 1 / 255)
    assert not found_in(logits * 30.0, labels, trials=given)


def test_a_network_that_names_one_class_for_all_samples_of_a_sorted_set():
    logits, labels = calibrated(4000, seed=8)
    same = np.flatnonzero(labels == 3)[:256]
    blind = np.tile(np.where(np.arange(10) == 3, 4.0, 0.0), (len(same), 1))
    for factor in (255.0, 1 / 255):
        given = rescaled(logits[same], blind, labels[same], factor)
        ((_, answers),) = given.tried
        assert answers.label_log_probability.mean() > -0.2
        found = found_in(logits, labels, trials=given)
        assert not found.keys() & {"inputs-not-scaled", "inputs-scaled-twice"}


def test_a_few_rows_are_no_evidence():
    logits, labels = calibrated(10, seed=6)
    garbage = np.zeros_like(logits)
    garbage[:, 0] = 9.0
    found = found_in(garbage, labels, trials=rescaled(garbage, logits, labels, 255.0))
    assert "inputs-scaled-twice" not in found


def normalised(sent, others, labels):
    """A trial of ImageNet's normalisation and of halves, with these answers."""
    found = rescalings(np.ones((1, 3, 2, 2)))[1:]
    tried = [(how, records_of(other, labels)) for how, other in zip(found, others, strict=True)]
    return PreparationTrials(records_of(sent, labels), tried)


def test_the_normalisation_with_the_best_answers_is_named():
    logits, labels = calibrated(256, seed=1)
    garbage = np.random.default_rng(2).normal(size=logits.shape) * 3.0
    fair = logits + garbage / 4
    for others, mean in (((logits, fair), 0.485), ((fair, logits), 0.5)):
        found = found_in(garbage, labels, trials=normalised(garbage, others, labels))
        told = found["inputs-not-scaled"]
        assert told.figures["mean"][0] == mean
        assert "The inputs lie between 0 and 1; normalised with" in told.message
        assert f"mean [{mean}, " in told.message
        assert told.figures["rescaled_accuracy"] == np.mean(logits.argmax(axis=1) == labels)


def test_a_normalisation_that_only_makes_the_model_less_sure_is_none():
    logits, labels = calibrated(256, seed=3)
    given = normalised(logits * 9.0, (logits, logits * 3.0), labels)
    assert not found_in(logits * 9.0, labels, trials=given)


def test_how_many_scales_are_tried_raises_the_bar():
    """Twelve samples won and none lost: enough for one trial at 0.1 %, not for five."""
    logits, labels = calibrated(64, seed=4, spread=9.0)
    sent = logits.copy()
    sent[:12] = -logits[:12]
    (how, *_), worse = rescalings(np.ones((1, 3, 2, 2)))[1:], -logits
    for n_others in (0, 4):
        tried = [(how, records_of(logits, labels))]
        tried += [(how, records_of(worse, labels))] * n_others
        given = PreparationTrials(records_of(sent, labels), tried)
        assert ("inputs-not-scaled" in found_in(sent, labels, trials=given)) == (n_others == 0)


@pytest.mark.parametrize(
    ("inputs", "factors"),
    [
        ([0.0, 255.0], [1 / 255]),
        ([0.0, 16.0], [1 / 255]),
        ([0, 1, 0], [255.0]),
        ([0.0, 0.4], [255.0]),
        ([0.0, 1.2], []),
        ([0.0, 256.0], []),
        ([-0.1, 200.0], []),
        ([-2.1, 2.6], []),
        ([0.0, 0.0], []),
    ],
)
def test_which_inputs_are_looked_at_twice(inputs, factors):
    assert [found.figures["factor"] for found in rescalings(np.array(inputs))] == factors


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((2, 3, 5, 5), 1),
        ((2, 5, 5, 3), 3),
        ((2, 1, 5, 5), 1),
        ((2, 5, 5, 1), 3),
        ((2, 2, 5, 5), None),
        ((2, 3), None),
    ],
)
@pytest.mark.parametrize("most", [1.0, 255.0])
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
