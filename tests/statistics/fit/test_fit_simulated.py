"""End to end on simulated models whose truth is known: labels are drawn from the softmax itself."""

import pytest
from sample_strategies import fit_of, simulated_records

WORLDS = [  # sharpness of the model, lookup, measures
    (1.0, "smooth", ("learned", "neg_log_topk_mass")),
    (3.0, "smooth", ("learned", "neg_log_topk_mass")),
    (3.0, "step", ("entropy",)),
    (3.0, "interpolated", ("margin",)),
]


@pytest.fixture(scope="module", params=WORLDS, ids=str)
def world(request):
    """The sharpness and the fit."""
    sharpness, lookup, measures = request.param
    known, new = (simulated_records(6000, seed=seed, sharpness=sharpness) for seed in (11, 12))
    options = {"top_k": (1, 5), "bins": 10, "lookup": lookup, "measures": measures, "folds": 5}
    return sharpness, fit_of(known, evaluation=new, **options)


def test_served_probabilities_are_calibrated_whatever_the_model_says(world):
    """Ten bins of 600 in each set: a gap has a standard deviation up to .029, its square .0008."""
    _, fit = world
    for k in (1, 5):
        served = fit.events[k].measures[fit.events[k].served]
        assert served.evaluation["ece"] < 0.035
        assert served.evaluation["brier_calibration_error"] < 2e-3
        assert served.evaluation["eor"] > 2.0


def test_an_overconfident_model_is_seen_and_corrected(world):
    sharpness, fit = world
    raw = fit.events[1].baselines["raw_softmax"]
    served = fit.events[1].measures[fit.events[1].served]
    assert (raw.evaluation["ece_15"] > 0.1) == (sharpness > 1.0)
    if sharpness > 1.0:
        for name in ("brier", "nll", "ece_15"):
            assert served.evaluation[name] < raw.evaluation[name]
            assert served.scores[name].mean < raw.scores[name].mean
