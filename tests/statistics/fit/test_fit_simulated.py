"""End to end on simulated models whose truth is known: labels are drawn from the softmax itself."""

import numpy as np
import pytest
from sample_strategies import fit_of, simulated_records

from howsure.statistics.learned.recorded import with_learned

WORLDS = [  # sharpness of the model, lookup, measures
    (1.0, "smooth", ("learned", "neg_log_topk_mass")),
    (3.0, "smooth", ("learned", "neg_log_topk_mass")),
    (3.0, "step", ("entropy",)),
    (3.0, "interpolated", ("margin",)),
]


@pytest.fixture(scope="module", params=WORLDS, ids=str)
def world(request):
    """The sharpness, the fit and its evaluation set."""
    sharpness, lookup, measures = request.param
    calibration, evaluation = (
        simulated_records(6000, seed=seed, sharpness=sharpness) for seed in (11, 12)
    )
    options = {"top_k": (1, 5), "bins": 10, "lookup": lookup, "measures": measures, "folds": 5}
    return sharpness, fit_of(calibration, evaluation=evaluation, **options), evaluation


def test_served_probabilities_are_calibrated_whatever_the_model_says(world):
    """Ten bins of 600 in each set: a gap has a standard deviation up to .029, its square .0008."""
    _, fit, _ = world
    for k in (1, 5):
        served = fit.events[k].measures[fit.events[k].served]
        assert served.evaluation["ece"] < 0.035
        assert served.evaluation["brier_calibration_error"] < 2e-3
        assert served.evaluation["eor"] > 2.0


def test_an_overconfident_model_is_seen_and_corrected(world):
    sharpness, fit, _ = world
    raw = fit.events[1].baselines["raw_softmax"]
    served = fit.events[1].measures[fit.events[1].served]
    assert (raw.evaluation["ece_15"] > 0.1) == (sharpness > 1.0)
    if sharpness > 1.0:
        for name in ("brier", "nll", "ece_15"):
            assert served.evaluation[name] < raw.evaluation[name]
            assert served.scores[name].mean < raw.scores[name].mean


def test_cross_validation_foretells_the_evaluation(world):
    """Within four standard errors of the difference of two means over 6,000 samples.

    The spread over folds would be too small a measure: they are stratified, sets are not.
    """
    _, fit, records = world
    for k, event in fit.events.items():
        hits = records.hits(k)
        known = records if event.learned is None else with_learned(records, [event.learned.model])
        for measure in event.measures.values():
            said = measure.table.look_up(known.uncertainty[measure.column]).probability
            losses = {
                "brier": np.square(said - hits),
                "nll": -np.log(np.where(hits, said, 1.0 - said)),
            }
            for name, loss in losses.items():
                score, error = measure.scores[name], loss.std() / np.sqrt(len(loss))
                assert measure.evaluation[name] == pytest.approx(loss.mean(), rel=1e-12)
                assert abs(score.mean - loss.mean()) < 4.0 * np.sqrt(2.0) * error
