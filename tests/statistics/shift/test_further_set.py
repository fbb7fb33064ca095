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
    return {
        k: {
            measure: fit_bin_table(
                records.uncertainty[column(measure, k)],
                records.hits(k),
                **{"n_bins": 10, **options},
            )
            for measure in measures
        }
        for k in top_k
    }


@pytest.fixture(scope="module")
def calibration():
    return simulated_records(2000, seed=1)


def found_of(
    calibration, further, *, labelled=True, seed=0, served=SERVED, n_classes=10, **options
):
    return evaluate_set(
        tables_of(calibration, **options),
        calibration,
        further,
        served=served,
        labelled=labelled,
        n_classes=n_classes,
        seed=seed,
    )


def test_labelled_set_is_scored_by_the_tables_as_they_are(calibration):
    further = simulated_records(1500, seed=2)
    found = found_of(calibration, further)

    for k, event in found.events.items():
        assert event.accuracy == further.hits(k).mean()
        for name, measure in event.measures.items():
            values = further.uncertainty[column(name, k)]
            table = tables_of(calibration)[k][name]
            expected = compute_scores(predict_with_table(table, values, further.hits(k)))
            assert measure.scores == pytest.approx(expected, rel=1e-9)
            assert measure.ece_band.observed == pytest.approx(expected["ece_15"], rel=1e-9)
            assert list(measure.occupancy) == np.histogram(values, table.edges)[0].tolist()
            for level, share in measure.discarded.items():
                threshold = ood_thresholds(ranking_of(calibration.uncertainty[measure.column]))[
                    level
                ]
                assert share == (values > threshold).mean()
    assert found.model_scores.accuracy[1] == found.events[1].accuracy
    assert sum(found.confidence.counts) == sum(found.entropy.counts) == 1500
    assert sum(found.entropy.calibration_counts) == 2000
    assert found.above_confidence[0].count == 1500


def test_labels_of_an_unlabelled_set_are_ignored(calibration):
    further = simulated_records(800, seed=3)
    blank = replace(further, label=np.zeros_like(further.label), label_rank=further.label_rank * 0)

    found = found_of(calibration, further, labelled=False)
    assert to_plain(found) == to_plain(found_of(calibration, blank, labelled=False))
    assert found.model_scores is None
    for event in found.events.values():
        assert event.accuracy is None
        for measure in event.measures.values():
            assert (measure.scores, measure.ece_band, measure.ece_p_value) == (None, None, None)


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_order_of_samples_that_share_a_key_does_not_show(calibration, lookup):
    """Of 100,000 samples, one pair shares its key by chance."""
    further = simulated_records(500, seed=4)
    further = replace(further, tie_key=further.tie_key % np.uint32(50))
    orders = [np.arange(500)] + [np.random.default_rng(s).permutation(500) for s in range(3)]

    found = [found_of(calibration, further.take(order), lookup=lookup) for order in orders]
    assert all(to_plain(one) == to_plain(found[0]) for one in found)


def test_a_set_of_other_probabilities_is_shifted_in_words(calibration):
    overconfident = simulated_records(1500, seed=5, sharpness=3.0)
    found = found_of(calibration, overconfident)

    assert found.shifted
    assert found.events[1].shifted
    assert "Top-1: the set is shifted" in found.sentence
    assert "they are miscalibrated on this set" in found.events[1].sentence


def test_an_unlabelled_set_of_other_uncertainties_is_shifted_in_words(calibration):
    found = found_of(calibration, simulated_records(1500, seed=5, spread=1.5), labelled=False)

    assert found.shifted
    assert "Top-1: the set is shifted; answers are less certain than on the" in found.sentence
    assert "without labels" in found.sentence


def test_a_set_whose_labels_alone_are_others_is_seen_with_labels_only(calibration):
    """The model's scores are the same, its answers are not: concept shift."""
    further = simulated_records(1500, seed=6)
    ranks = np.where(np.arange(1500) % 3 == 0, 9, further.label_rank).astype(np.int32)
    further = replace(further, label_rank=ranks)

    assert found_of(calibration, further).events[1].shifted
    assert not found_of(calibration, further, labelled=False).shifted


def test_probabilities_that_fail_are_seen_among_many_events():
    """Each event's share of the level is then below one in two thousand."""
    top_k = tuple(range(1, 26))
    known = simulated_records(1000, seed=1, n_classes=30, top_k=top_k)
    wrong = replace(known, label_rank=np.full(1000, 29, dtype=np.int32))
    found = found_of(
        known,
        wrong,
        top_k=top_k,
        measures=("entropy",),
        served=dict.fromkeys(top_k, "entropy"),
        n_classes=30,
    )
    assert all(event.shifted for event in found.events.values())


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_like_sets_are_rarely_called_shifted(labelled, lookup):
    pool = simulated_records(3000, seed=7)
    calls = 0
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(3000)
        half, other = pool.take(order[:1500]), pool.take(order[1500:])
        found = found_of(
            half,
            other,
            labelled=labelled,
            seed=seed,
            lookup=lookup,
            measures=("entropy",),
            served={1: "entropy", 5: "entropy"},
        )
        calls += found.shifted

    assert calls <= 5


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("calibration_ranks", [[0], [3], [0] * 20, [3] * 20, [0, 1] * 10])
@pytest.mark.parametrize("ranks", [[0], [3], [0] * 20, [3] * 20])
def test_small_and_one_sided_sets_have_no_gap(calibration_ranks, ranks, labelled):
    found = found_of(
        records_with_ranks(calibration_ranks),
        records_with_ranks(ranks, seed=1),
        labelled=labelled,
        top_k=(1,),
        n_classes=6,
    )

    assert found.sentence.startswith("Top-1: ")
    for measure in found.events[1].measures.values():
        numbers = [measure.population.p_value, *(measure.scores or {}).values()]
        assert all(number is None or np.isfinite(number) for number in numbers)


def test_entropy_that_was_not_recorded_is_left_out(calibration):
    further = simulated_records(50, seed=8)
    further.uncertainty.pop("entropy")
    found = found_of(calibration, further, measures=("neg_log_pmax", "neg_log_topk_mass"))

    assert found.entropy is None


def test_bad_input_is_refused(calibration):
    tables = tables_of(calibration)
    options = {"labelled": True, "n_classes": 10}
    none = calibration.take(np.zeros(0, dtype=np.int64))
    with pytest.raises(ValueError, match="further must hold at least one"):
        evaluate_set(tables, calibration, none, served=SERVED, **options)
    with pytest.raises(ValueError, match="served must name one of the measures of Top-5"):
        evaluate_set(tables, calibration, calibration, served={1: "entropy"}, **options)
    other = simulated_records(20, seed=9, top_k=(1,))
    with pytest.raises(ValueError, match="further must hold neg_log_topk_mass_5"):
        evaluate_set(tables, calibration, other, served=SERVED, **options)
