"""The verdict: who is best, by how much, and whether that may be chance."""

from dataclasses import replace

import pytest
from sample_strategies import fit_of, records_with_ranks, simulated_records

from howsure.report.words.compared_methods import verdict_sentence
from howsure.report.words.fit_notes import fit_notes
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.verdict import reach_verdict

RECORDS = simulated_records(200, seed=2, top_k=(1,))


@pytest.fixture(scope="module")
def event():
    return fit_of(RECORDS, bins=4, evaluation=RECORDS).events[1]


def event_with(event, bins, difference=None, **baselines):
    """The event where methods have these cross-validated losses, and differences to match."""

    def score(values):
        mean = None if not values else sum(values) / len(values)
        return {"nll": FoldScore(mean, None, len(values), None, tuple(values))}

    served = replace(event.measures["entropy"], scores=score(bins), evaluation=None)
    methods = {}
    for name, (values, error) in baselines.items():
        by = PairedDifference(sum(values) / len(values) - sum(bins) / len(bins), error, 10)
        methods[name] = replace(
            event.baselines["isotonic"], name=name, scores=score(values), evaluation=None,
            difference={"nll": difference or by},
        )  # fmt: skip
    fitted = {"baselines": methods, "verdict": reach_verdict(served, methods)}
    return replace(event, measures={event.served: served}, **fitted)


CASES = {  # losses of bins and baselines -> best, rival, difference
    "best": (([0.2, 0.2], {"platt": ([0.3, 0.3], 0.01), "constant": ([0.5, 0.5], 0.01)}),
             ("bins", "platt", 0.1)),
    "worse by chance": (([0.3, 0.3], {"platt": ([0.2, 0.2], 0.06)}), ("platt", "bins", 0.1)),
    "worse": (([0.3, 0.3], {"platt": ([0.2, 0.2], 0.01)}), ("platt", "bins", 0.1)),
    "equal": (([0.3, 0.3], {"platt": ([0.3, 0.3], 0.0)}), ("bins", "platt", 0.0)),
    "rival with fewer folds": (([0.3, 0.3], {"platt": ([0.1], 0.01)}), ("bins", None, None)),
    "bins with fewer folds": (([0.1], {"platt": ([0.2, 0.2], 0.03)}), ("platt", "bins", None)),
}  # fmt: skip


def test_the_best_method_and_its_rival(event, golden):
    sentences = []
    for name, ((bins, baselines), expected) in CASES.items():
        changed = event_with(event, bins, **baselines)
        compared = changed.verdict.cross_validation
        mean = None if compared.difference is None else pytest.approx(compared.difference.mean)
        assert (changed.verdict.best, compared.rival, mean) == expected, name
        sentences.append(f"{name}: {verdict_sentence(changed, 2)}")
    golden("statistics/fit_verdicts.txt", "\n".join(sentences))


@pytest.mark.parametrize(("least", "error", "folds", "outdone"), [
    (0.2, 0.01, 5, True), (0.2, 0.01, 2, False), (0.2, 0.04, 5, False), (0.25, 0.001, 5, False),
    (0.4, 0.01, 5, False),
])  # fmt: skip
def test_what_is_served_is_outdone_by_far_less_loss_only(event, least, error, folds, outdone):
    difference = PairedDifference(least - 0.3, error, folds)
    platt = [least] * folds, error
    assert event_with(event, [0.3] * folds, difference, platt=platt).verdict.outdone == outdone


# Two uncorrected standard errors called a baseline clearly better in each of the first sets.
@pytest.mark.parametrize("seeds", [
    (13, 34, 102, 115), *(pytest.param(range(at, at + 10), marks=pytest.mark.slow)
                          for at in range(0, 100, 10)),
])  # fmt: skip
def test_a_lead_that_new_samples_do_not_show_is_not_clear(seeds):
    """On calibrated sets no other method is better; where logits are twice too large, softmax is
    clearly worse.
    """
    options = {"measures": ("neg_log_topk_mass",), "folds": 10}
    for seed in seeds:
        calibrated = fit_of(simulated_records(600, seed=seed, top_k=(1,)), **options).events[1]
        lead = calibrated.verdict.cross_validation
        assert lead.best == "bins" or not lead.difference.clear
    sharp = simulated_records(600, seed=seeds[0], top_k=(1,), sharpness=2.0)
    softmax = fit_of(sharp, **options).events[1].baselines["raw_softmax"]
    assert softmax.difference["nll"].clear


def test_a_difference_that_only_rounds_is_none(event):
    last_bit = PairedDifference(-1e-17, 1e-17, 2)
    verdict = event_with(event, [0.3, 0.3], last_bit, platt=([0.3, 0.3], 0.0)).verdict
    assert verdict.cross_validation.difference.mean == 0.0


def test_without_folds_nothing_is_compared(event):
    served = replace(event.measures["entropy"], scores={"nll": FoldScore(None, None, 0, None)})
    verdict = reach_verdict(served, {})
    assert (verdict.best, verdict.cross_validation) == (None, None)


@pytest.mark.parametrize("evaluation", [None, RECORDS])
def test_methods_are_not_compared_on_an_event_rarer_than_folds(evaluation):
    """Three folds of two failures rank methods by chance: not even a clear lead is a warning."""
    records = records_with_ranks([0] * 98 + [1] * 2)
    fit = fit_of(records, bins=4, folds=3, evaluation=evaluation, n_classes=10)
    sentence = verdict_sentence(fit.events[1], 3)
    assert ("too rarely to compare" in sentence, "loss" in sentence) == (True, False)
    assert sentence not in fit_notes(fit, records, FitOptions(top_k=(1,), folds=3))


def test_the_evaluation_set_is_judged_sample_by_sample(event):
    found = event.verdict.evaluation
    losses = {name: b.evaluation["nll"] for name, b in event.baselines.items()}
    losses["bins"] = event.measures[event.served].evaluation["nll"]
    assert (found.best, found.nll) == min(losses.items(), key=lambda item: item[1])
    assert found.difference.pairs == 200
    assert found.difference.mean == pytest.approx(losses[found.rival] - losses[found.best])
