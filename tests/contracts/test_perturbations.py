"""Laws that every measure keeps that runs the model more than once."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import calibrated, drawn_passes, fit_of, records_of

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import (
    DEFAULT_MEASURES,
    MULTI_PASS_MEASURES,
    check_measures,
    column,
    columns,
    parse_measure,
)
from howsure.statistics.measures.measure import prefix_column
from howsure.statistics.measures.passes import averaged_columns, column_names, slope_columns
from howsure.statistics.records.build import build_records
from howsure.statistics.shift.evaluation import evaluate_set

EACH = pytest.mark.parametrize("name", MULTI_PASS_MEASURES)
N_PASSES = 12


def made(name, log_p, labels):
    """Columns of a measure, from passes or from as many slopes, of one number or of each logit."""
    if MULTI_PASS_MEASURES[name].has_mean_prediction:
        return averaged_columns(name, log_p, labels)
    slopes = log_p if MULTI_PASS_MEASURES[name].needs_logits else log_p[:, :, 0]
    return slope_columns(name, slopes, exact=False)


def records_of_logits(n_samples, *, seed):
    logits, labels = calibrated(n_samples, seed=seed)
    return records_of(logits, labels, top_k=(1, 5), logits=True)


def with_passes(name, n_samples, *, seed):
    """Records, and passes that differ the more the likelier the model is wrong."""
    records = records_of_logits(n_samples, seed=seed)
    rng = np.random.default_rng(seed)
    spread = 0.05 + ~records.hits(1) + 0.3 * ~records.hits(5) + 0.2 * rng.random(n_samples)
    passes = spread[:, np.newaxis, np.newaxis] * rng.normal(size=(n_samples, N_PASSES, 10))
    log_p = passes - np.log(np.exp(passes).sum(axis=2, keepdims=True))
    return records.with_passes(made(name, log_p, records.label.astype(np.int64)))


@EACH
def test_it_has_a_name_and_a_column_of_its_own_and_is_not_asked_for_by_default(name):
    found = parse_measure(name)
    assert (found.name, found.kind, found.needs_model) == (name, "multi_pass", True)
    assert column(name, 1) == column(name, 5) == name
    assert prefix_column(name, 5) == f"{name}@5"
    assert name not in {*DEFAULT_MEASURES, *(own for own, _, _ in columns((1, 5), logits=True))}
    if MULTI_PASS_MEASURES[name].needs_logits:
        with pytest.raises(ValueError, match=f"{name} needs logits"):
            check_measures([name], logits=False)
    check_measures([name], logits=True)
    for other in (f"{name}@5", f"{name}_1", name.upper(), f" {name}"):
        with pytest.raises(ValueError, match=f"measure must be one of learned.*{name}"):
            FitOptions(measures=(other,))


@EACH
@pytest.mark.parametrize("n_passes", [2, 3, 7, 20, 21])
def test_its_columns_have_the_names_foretold(name, n_passes):
    found = made(name, *drawn_passes(8, n_passes, 5))
    uncertainty, means = column_names(name, n_passes)
    assert tuple(found.uncertainty) == (name, *uncertainty)
    assert tuple(found.mean_log_probability) == means
    assert tuple(found.mean_label_rank) == tuple(found.mean_log_odds) == means
    assert bool(means) is MULTI_PASS_MEASURES[name].has_mean_prediction


@EACH
def test_it_is_finite_never_negative_and_more_where_passes_differ_more(name):
    log_p, labels = drawn_passes(200, N_PASSES, 5, scale=0.1)
    for values in made(name, log_p, labels).uncertainty.values():
        assert values.dtype == np.float32
        assert np.isfinite(values).all()
        assert not np.signbit(values).any()
    p = np.exp(log_p)
    closer = np.log((p + p.mean(axis=1, keepdims=True)) / 2)  # half way to their mean
    tamed = log_p / 4 if not MULTI_PASS_MEASURES[name].has_mean_prediction else closer
    less, more = (made(name, one, labels).uncertainty[name] for one in (tamed, log_p))
    assert (less < more).all()


@EACH
def test_a_column_of_the_first_passes_is_the_full_one_of_a_run_of_so_many(name):
    log_p, labels = drawn_passes(30, N_PASSES, 5)
    found = made(name, log_p, labels).uncertainty
    for n in (2, 3, 5, 10):
        fewer = made(name, log_p[:, :n], labels).uncertainty
        np.testing.assert_array_equal(found[prefix_column(name, n)], fewer[name])


@EACH
def test_samples_beside_a_sample_do_not_show(name):
    log_p, labels = drawn_passes(6, N_PASSES, 5)
    whole = made(name, log_p, labels)
    for row in range(6):
        alone = made(name, log_p[row : row + 1], labels[row : row + 1])
        for family in ("uncertainty", "mean_log_probability", "mean_label_rank", "mean_log_odds"):
            for held, values in getattr(whole, family).items():
                np.testing.assert_array_equal(values[row], getattr(alone, family)[held][0])


@EACH
def test_a_calibration_is_fitted_to_it_and_served_by_it_and_judges_further_sets(name):
    """Where it is best."""
    records, evaluation = with_passes(name, 600, seed=1), with_passes(name, 300, seed=2)
    options = {"measures": ("entropy", name), "bins": 5, "folds": 4}
    fit = fit_of(records, evaluation=evaluation, **options)
    event = fit.events[1]
    found = event.measures[name]
    assert found.column == event.served == name
    assert found.scores["nll"].mean < event.measures["entropy"].scores["nll"].mean
    assert found.evaluation["auroc"] > 0.9
    for scores in (fit.model_scores["calibration"], fit.model_scores["evaluation"]):
        assert [row.passes for row in scores.passes[name]] == [1, 2, 3, 5, 10, 12]
    judging = {"served": {1: name}, "labelled": True, "n_classes": 10}
    further = evaluate_set({1: {name: found.table}}, records, evaluation, **judging)
    assert further.events[1].measures[name].column == name
    assert list(further.model_scores.passes) == [name]
    with pytest.raises(ValueError, match=f"records must hold {name}, not only"):
        fit_of(records_of_logits(50, seed=1), **options)


@EACH
def test_the_order_of_samples_does_not_show_where_only_their_passes_tell_them_apart(name):
    """Samples of one tie key and one base answer, as of an image that is there many times."""
    labels = np.arange(400) % 2
    log_p, _ = drawn_passes(400, N_PASSES, 3)
    answers, keys = np.tile([1.0, 0.0, -1.0], (400, 1)), np.zeros(400, dtype=np.uint32)
    base = build_records(answers, labels, tie_keys=keys, top_k=(1,), logits=True)
    found = made(name, log_p, labels)
    same = {held: np.zeros_like(values) for held, values in found.uncertainty.items()}
    records = base.with_passes(replace(found, uncertainty=same))
    sets = records, records.take(np.random.default_rng(1).permutation(400))
    one, other = (fit_of(own, measures=(name,), bins=2).model_scores for own in sets)
    assert one == other
