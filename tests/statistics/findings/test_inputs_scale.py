"""Inputs on another scale, told by what the model makes of the right one."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of

from howsure.statistics.findings.evidence import RescaledTrial
from howsure.statistics.findings.inputs_scale import rescaling_factor


def rescaled(sent, other, labels, factor):
    return RescaledTrial(factor, records_of(sent, labels), records_of(other, labels))


@pytest.mark.parametrize(
    ("factor", "code"), [(1 / 255, "inputs-not-scaled"), (255.0, "inputs-scaled-twice")]
)
def test_a_scale_that_is_far_better(factor, code):
    logits, labels = calibrated(256, seed=1)
    garbage = np.random.default_rng(2).normal(size=logits.shape) * 3.0
    found = found_in(garbage, labels, rescaled=rescaled(garbage, logits, labels, factor))
    figures = found[code].figures
    assert figures["factor"] == factor
    assert figures["rescaled_accuracy"] == np.mean(logits.argmax(axis=1) == labels)
    assert figures["mean_log_probability"] < figures["rescaled_mean_log_probability"]
    assert len(found.keys() & {"inputs-not-scaled", "inputs-scaled-twice"}) == 1


def test_a_network_that_minds_the_scale_by_its_confidence_alone():
    logits, labels = calibrated(256, seed=3)
    given = rescaled(logits * 255.0, logits, labels, 1 / 255)
    figures = found_in(logits * 255.0, labels, rescaled=given)["inputs-not-scaled"].figures
    assert figures["accuracy"] == figures["rescaled_accuracy"]


def test_a_scale_that_costs_hits_is_none():
    """Its answers are unsure, which is better than to be sure and wrong, but fewer are right."""
    logits, labels = calibrated(256, seed=4)
    flat = np.random.default_rng(5).normal(size=logits.shape) * 0.3
    flat[np.arange(256), labels] += 0.35
    given = rescaled(logits * 30.0, flat, labels, 1 / 255)
    assert not found_in(logits * 30.0, labels, rescaled=given)


def test_a_network_that_names_one_class_for_all_samples_of_a_sorted_set():
    logits, labels = calibrated(4000, seed=8)
    same = np.flatnonzero(labels == 3)[:256]
    blind = np.tile(np.where(np.arange(10) == 3, 4.0, 0.0), (len(same), 1))
    for factor in (255.0, 1 / 255):
        given = rescaled(logits[same], blind, labels[same], factor)
        assert given.rescaled.label_log_probability.mean() > -0.2
        found = found_in(logits, labels, rescaled=given)
        assert not found.keys() & {"inputs-not-scaled", "inputs-scaled-twice"}


def test_a_few_rows_are_no_evidence():
    logits, labels = calibrated(10, seed=6)
    garbage = np.zeros_like(logits)
    garbage[:, 0] = 9.0
    found = found_in(garbage, labels, rescaled=rescaled(garbage, logits, labels, 255.0))
    assert "inputs-scaled-twice" not in found


@pytest.mark.parametrize(
    ("inputs", "factor"),
    [
        ([0.0, 255.0], 1 / 255),
        ([0.0, 16.0], 1 / 255),
        ([0, 1, 0], 255.0),
        ([0.0, 0.4], 255.0),
        ([0.0, 1.2], None),
        ([0.0, 256.0], None),
        ([-0.1, 200.0], None),
        ([-2.1, 2.6], None),
        ([0.0, 0.0], None),
    ],
)
def test_which_inputs_are_looked_at_twice(inputs, factor):
    assert rescaling_factor(np.array(inputs)) == factor
