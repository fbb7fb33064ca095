from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.measures import column
from howsure.statistics.plain import to_plain
from howsure.statistics.ranking import ood_thresholds, ranking_of
from howsure.statistics.scores import compute_scores
from howsure.statistics.shift.evaluation import evaluate_set

SERVED = {1: "neg_log_pmax", 5: "neg_log_topk_mass"}
MEASURES = ("entropy", "neg_log_pmax", "neg_log_topk_mass")


def tables_of(records, *, top_k=(1, 5), measures=MEASURES, **options):
    def table(measure, k):
        values, hits = records.uncertainty[column(measure, k)], records.hits(k)
        return fit_bin_table(values, hits, **{"n_bins": 10, **options})

    return {k: {measure: table(measure, k) for measure in measures} for k in top_k}


@pytest.fixture(scope="module")
def calibration():
    return simulated_records(2000, seed=1)


def found_of(calibration, further, *, top_k=(1, 5), measures=MEASURES, lookup="step", **options):
    tables = tables_of(calibration, top_k=top_k, measures=measures, lookup=lookup)
    options = {"served": SERVED, "labelled": True, "n_classes": 10, "seed": 0} | options
    return evaluate_set(tables, calibration, further, **options)


def test_labelled_set_is_scored_by_the_tables_as_they_are(calibration):
    further = simulated_records(1500, seed=2)
    found = found_of(calibration, further)
    for k, event in found.events.items():
        assert event.accuracy == further.hits(k).mean()
        for name, measure in event.measures.items():
            values, table = further.uncertainty[column(name, k)], tables_of(calibration)[k][name]
            expected = compute_scores(predict_with_table(table, values, further.hits(k)))
            assert measure.scores == pytest.approx(expected, rel=1e-9)
            assert list(measure.occupancy) == np.histogram(values, table.edges)[0].tolist()
            thresholds = ood_thresholds(ranking_of(calibration.uncertainty[measure.column]))
            shares = {level: (values > end).mean() for level, end in thresholds.items()}
            assert measure.discarded == shares
    assert found.model_scores.accuracy[1] == found.events[1].accuracy
    assert sum(found.confidence.counts) == sum(found.entropy.counts) == 1500
    assert sum(found.entropy.calibration_counts) == 2000
    assert found.above_confidence[0].count == 1500


def test_labels_of_an_unlabelled_set_are_ignored(calibration):
    further = simulated_records(800, seed=3)
    blank = replace(further, label=np.zeros_like(further.label), label_rank=further.label_rank * 0)

    found = found_of(calibration, further, labelled=False)
    assert to_plain(found) == to_plain(found_of(calibration, blank, labelled=False))
    assert found.model_scores is found.events[1].accuracy is None
    for measure in found.events[1].measures.values():
        assert measure.scores is measure.ece_band is measure.ece_p_value is None


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_order_of_samples_that_share_a_key_does_not_show(calibration, lookup):
    """Of 100,000 samples, one pair shares its key by chance."""
    further = simulated_records(500, seed=4)
    further = replace(further, tie_key=further.tie_key % np.uint32(50))
    shuffled = further.take(np.random.default_rng(1).permutation(500))
    one, other = (found_of(calibration, sent, lookup=lookup) for sent in (further, shuffled))
    assert to_plain(one) == to_plain(other)


def test_what_is_seen_with_labels_and_without(calibration):
    """The last set has the same scores, but its answers are not the same: concept shift."""
    further = simulated_records(1500, seed=6)
    ranks = np.where(np.arange(1500) % 3 == 0, 9, further.label_rank).astype(np.int32)
    for records, *expected in (
        (simulated_records(1500, seed=5, sharpness=3.0), True, True),
        (simulated_records(1500, seed=5, spread=1.5), True, True),
        (replace(further, label_rank=ranks), True, False),
        (further, False, False),
    ):
        seen = [found_of(calibration, records, labelled=flag).shifted for flag in (True, False)]
        assert seen == expected


def test_probabilities_that_fail_are_seen_among_many_events():
    """Each event's share of the level is then below one in two thousand."""
    top_k = tuple(range(1, 26))
    known = simulated_records(1000, seed=1, n_classes=30, top_k=top_k)
    wrong = replace(known, label_rank=np.full(1000, 29, dtype=np.int32))
    served = dict.fromkeys(top_k, "entropy")
    found = found_of(known, wrong, top_k=top_k, measures=("entropy",), served=served, n_classes=30)
    assert all(event.shifted for event in found.events.values())


@pytest.mark.parametrize(("labelled", "lookup"), [(True, "interpolated"), (False, "step")])
def test_like_sets_are_rarely_called_shifted(labelled, lookup):
    """Two of 100 are expected at most; more than five have a chance of 2 %."""
    pool, calls = simulated_records(1600, seed=7), 0
    options = {"measures": ("entropy",), "served": {1: "entropy", 5: "entropy"}, "lookup": lookup}
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(1600)
        half, other = pool.take(order[:800]), pool.take(order[800:])
        calls += found_of(half, other, labelled=labelled, seed=seed, **options).shifted
    assert calls <= 5


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("ranks", [[0], [3], [0] * 20, [3] * 20], ids=str)
@pytest.mark.parametrize("known", [[0], [3], [0] * 20, [3] * 20, [0, 1] * 10], ids=str)
def test_small_and_one_sided_sets_have_no_gap(known, ranks, labelled):
    calibration, further = records_with_ranks(known), records_with_ranks(ranks, seed=1)
    found = found_of(calibration, further, labelled=labelled, top_k=(1,), n_classes=6)
    for measure in found.events[1].measures.values():
        numbers = [measure.population.p_value, *(measure.scores or {}).values()]
        assert all(number is None or np.isfinite(number) for number in numbers)


def test_other_columns_are_refused_and_entropy_may_be_left_out(calibration):
    other, without = simulated_records(20, seed=9, top_k=(1,)), simulated_records(50, seed=8)
    with pytest.raises(ValueError, match="further must hold at least one"):
        found_of(calibration, calibration.take(np.zeros(0, dtype=np.int64)))
    with pytest.raises(ValueError, match="served must name one of the measures of Top-5"):
        found_of(calibration, calibration, served={1: "entropy"})
    with pytest.raises(ValueError, match="further must hold neg_log_topk_mass_5"):
        found_of(calibration, other)
    without.uncertainty.pop("entropy")
    found = found_of(calibration, without, measures=("neg_log_pmax", "neg_log_topk_mass"))
    assert found.entropy is None
