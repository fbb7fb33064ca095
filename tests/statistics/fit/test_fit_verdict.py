"""The verdict: who is best, by how much, and whether that may be chance."""

from dataclasses import replace

import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.comparison import PairedDifference
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.verdict import reach_verdict
from howsure.statistics.plain import percent, to_plain


@pytest.fixture(scope="module")
def event():
    records = simulated_records(200, seed=2, top_k=(1,))
    options = FitOptions(top_k=(1,), bins=4)
    return fit_calibration(records, options=options, evaluation=records).events[1]


def with_losses(event, bins, **baselines):
    """The served fit and baselines with these cross-validated losses, and differences to match."""

    def score(values):
        mean = None if not values else sum(values) / len(values)
        return {"nll": FoldScore(mean, None, len(values), None, tuple(values))}

    served = replace(event.measures["entropy"], scores=score(bins), evaluation=None)
    found = {}
    for name, (values, error) in baselines.items():
        difference = PairedDifference(sum(values) / len(values) - sum(bins) / len(bins), error, 2)
        found[name] = replace(
            event.baselines["isotonic"],
            name=name,
            scores=score(values),
            evaluation=None,
            difference={"nll": difference},
        )
    return served, found


def test_the_bins_and_the_next_best(event):
    served, baselines = with_losses(
        event, [0.2, 0.2], platt=([0.3, 0.3], 0.01), constant=([0.5, 0.5], 0.01)
    )
    verdict = reach_verdict(1, served, baselines, folds=2)
    assert verdict.best == "bins"
    assert verdict.cross_validation.rival == "platt"
    assert verdict.cross_validation.difference.mean == pytest.approx(0.1)
    assert verdict.sentence.startswith("Top-1, in cross-validation: ")
    assert verdict.sentence.endswith(
        "The served method (entropy, smooth) has the lowest loss (negative log-likelihood 0.20000) "
        "of 3 methods; that of platt is 50.0 % higher."
    )


def test_what_the_baselines_are_fitted_on(event):
    assert event.verdict.fitted_on == (
        "beta_calibration, quadratic_logistic and isotonic are fitted on the probability of "
        "raw_softmax."
    )
    options = FitOptions(top_k=(1,), bins=4, measures=("entropy",))
    records = simulated_records(200, seed=2, top_k=(1,), n_classes=2)
    found = fit_calibration(records, options=options).events[1]
    names = [name for name, one in found.baselines.items() if one.fitted_on == "class_1"]
    assert names == ["beta_calibration", "quadratic_logistic", "isotonic"]
    assert "on the model's probability of class 1, " in found.verdict.fitted_on


def test_a_better_baseline_and_by_how_much(event):
    served, baselines = with_losses(event, [0.3, 0.3], platt=([0.2, 0.2], 0.06))
    verdict = reach_verdict(5, served, baselines, folds=2)
    assert (verdict.best, verdict.cross_validation.rival) == ("platt", "bins")
    assert verdict.cross_validation.difference.mean == pytest.approx(0.1)
    assert verdict.sentence.startswith("Top-5, in cross-validation: ")
    assert verdict.sentence.endswith(
        "Platt has the lowest loss (negative log-likelihood 0.20000); that of the served method "
        "(entropy, smooth) is 50.0 % higher, which may be chance."
    )


def test_the_bins_come_first_among_equals(event):
    served, baselines = with_losses(event, [0.3, 0.3], platt=([0.3, 0.3], 0.0))
    assert reach_verdict(1, served, baselines, folds=2).best == "bins"


def test_a_difference_that_only_rounds_is_none(event):
    served, baselines = with_losses(event, [0.3, 0.3], platt=([0.3, 0.3], 0.0))
    last_bit = PairedDifference(-1e-17, 1e-17, 2)
    baselines["platt"] = replace(baselines["platt"], difference={"nll": last_bit})
    verdict = reach_verdict(1, served, baselines, folds=2)
    assert verdict.cross_validation.difference.mean == 0.0
    assert "that of platt is equal" in verdict.sentence


def test_a_mean_over_fewer_folds_is_no_match(event):
    served, baselines = with_losses(event, [0.3, 0.3], platt=([0.1], 0.01))
    assert reach_verdict(1, served, baselines, folds=2).best == "bins"


def test_bins_that_lost_everything_on_a_fold_are_no_rival_over_the_others(event):
    served, baselines = with_losses(event, [0.1], platt=([0.2, 0.2], 0.03))
    verdict = reach_verdict(1, served, baselines, folds=2)
    assert (verdict.best, verdict.cross_validation.difference) == ("platt", None)
    assert verdict.sentence.endswith(
        " Platt has the lowest loss (negative log-likelihood 0.20000)."
    )


def test_without_folds_nothing_is_compared(event):
    served = replace(event.measures["entropy"], scores={"nll": FoldScore(None, None, 0, None)})
    verdict = reach_verdict(1, served, {}, folds=2)
    assert (verdict.best, verdict.cross_validation) == (None, None)
    assert verdict.sentence == "Top-1: no cross-validation, so methods cannot be compared."


@pytest.mark.parametrize(("ranks", "often"), [([0] * 98, "fails in 2"), ([1] * 98, "holds in 2")])
@pytest.mark.parametrize("evaluated", [True, False])
def test_methods_are_not_compared_on_an_event_rarer_than_folds(ranks, often, evaluated):
    """Ten folds of two failures rank methods by chance: not even a clear lead is a warning."""
    records = records_with_ranks([*ranks, 1 - ranks[0], 1 - ranks[0]])
    evaluation = simulated_records(200, seed=2, top_k=(1,)) if evaluated else None
    fit = fit_calibration(
        records, options=FitOptions(top_k=(1,), bins=4), evaluation=evaluation, n_classes=10
    )
    sentence = fit.events[1].verdict.sentence
    assert sentence.endswith(
        f"Top-1 {often} of 100 calibration samples: too rarely to compare methods."
    )
    assert "loss" not in sentence
    assert sentence not in fit.warnings


def test_the_evaluation_set_is_judged_sample_by_sample(event):
    found = event.verdict.evaluation
    losses = {name: b.evaluation["nll"] for name, b in event.baselines.items()}
    losses["bins"] = event.measures[event.served].evaluation["nll"]
    assert found.best == min(losses, key=losses.get)
    assert found.nll == losses[found.best]
    assert found.difference.pairs == 200
    assert found.difference.mean == pytest.approx(losses[found.rival] - losses[found.best])
    assert event.verdict.sentence.startswith("Top-1, on the evaluation set: ")
    assert to_plain(event.verdict)["evaluation"]["best"] == found.best


@pytest.mark.parametrize("evaluated", [True, False])
def test_the_sentence_has_the_calibration_error_that_baselines_have_too(event, evaluated):
    """It is the error that is tested."""
    served = event.measures[event.served]
    fit = served if evaluated else replace(served, evaluation=None)
    error = served.evaluation["ece_15"] if evaluated else served.scores["ece_15"].mean
    band = served.evaluation_ece_band if evaluated else served.ece_band
    sentence = reach_verdict(1, fit, event.baselines, folds=2).sentence
    chance = "no more" if band.consistent else "more"
    assert f"off by {percent(error)} on average (ece_15), {chance} than chance" in sentence
    assert f"explains (up to {percent(band.upper)})" in sentence
    assert band.observed == pytest.approx(error, rel=1e-12)
