import numpy as np
import pytest
from sample_strategies import simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions

N_CLASSES = 6


def drawn(n_samples, *, seed, sharpness=1.0):
    return simulated_records(
        n_samples, seed=seed, sharpness=sharpness, n_classes=N_CLASSES, spread=2.0
    )


def shown(records, *, evaluation=None, k=1, **options):
    fit = fit_calibration(records, options=FitOptions(**options), evaluation=evaluation)
    event = fit.events[k]
    return event.measures[event.served]


@pytest.fixture(scope="module")
def overconfident():
    return shown(drawn(2000, seed=0, sharpness=2.5), evaluation=drawn(3000, seed=1, sharpness=2.5))


def excess(rows):
    return sum(row.count * abs(row.said - row.hit_rate) for row in rows) / sum(
        row.count for row in rows
    )


def test_before_is_the_models_own_and_after_is_what_is_served(overconfident):
    found = overconfident.reliability
    assert found.held_out == "evaluation"
    assert excess(found.after) == pytest.approx(overconfident.evaluation["ece"], abs=1e-12)
    assert excess(found.before) > 5 * excess(found.after)
    assert all(row.said > row.hit_rate for row in found.before if row.count > 100)


def test_every_sample_is_in_one_row_of_each(overconfident):
    found = overconfident.reliability
    for rows in (found.before, found.after, found.classes):
        assert sum(row.count for row in rows) == found.n_samples == 3000
        assert all(row.count > 0 and row.lower <= row.hit_rate <= row.upper for row in rows)
        assert len({row.group for row in rows}) == len(rows)


def test_classes_come_worst_first(overconfident):
    found = [row.excess for row in overconfident.reliability.classes]
    assert found == sorted(found, reverse=True)
    assert len(found) == N_CLASSES


def test_a_half_that_fitted_nothing_judges_where_no_set_was_sent():
    served = shown(drawn(2001, seed=2, sharpness=2.5), bins=10)
    found = served.reliability
    assert found.held_out == "half"
    assert found.n_samples in (1000, 1001)
    # The table's own samples would come true to the last one.
    assert 0.002 < excess(found.after) < excess(found.before)


def test_a_single_sample_has_no_half():
    assert shown(drawn(1, seed=3)).reliability is None


def test_one_measure_alone_is_shown_and_the_others_differ_from_it():
    fit = fit_calibration(drawn(400, seed=4), options=FitOptions())
    for event in fit.events.values():
        for name, found in event.measures.items():
            served = name == event.served
            assert (found.reliability is not None) == served == (found.scatter is not None)
            assert (found.difference == {}) == served
            if not served:
                mine, theirs = found.scores["nll"], event.measures[event.served].scores["nll"]
                assert found.difference["nll"].mean == pytest.approx(mine.mean - theirs.mean)


def test_a_scatter_draws_200_of_each_outcome_and_counts_all():
    records = drawn(3000, seed=5)
    scatter = shown(records).scatter
    outcomes = (scatter.hit, scatter.top5_hit, scatter.miss)
    rank = records.label_rank
    assert [found.count for found in outcomes] == [
        int(np.sum(rank == 0)),
        int(np.sum((rank > 0) & (rank < 5))),
        int(np.sum(rank == 5)),
    ]
    assert [len(found.loss) for found in outcomes] == [min(200, found.count) for found in outcomes]
    assert all(found.infinite == 0 for found in outcomes)
    # Where the prediction is right, no loss is below the uncertainty -log p_max.
    served = shown(records, measures=("neg_log_pmax",)).scatter.hit
    assert np.allclose(served.uncertainty, served.loss, rtol=2e-5)


def test_a_band_holds_the_risk_and_narrows():
    curves = shown(drawn(1000, seed=6)).curves
    band, curve = curves.risk_band, curves.risk_coverage
    assert np.array_equal(band.errors / band.accepted, curve.risk)
    assert np.all((band.lower <= curve.risk) & (curve.risk <= band.upper))
    width = band.upper - band.lower
    assert width[-1] < width[len(width) // 4]
