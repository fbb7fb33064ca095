import pytest

from howsure.statistics.fit.options import FitOptions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top_k": ()}, r"top_k must hold distinct events, at least one, not \(\)"),
        ({"top_k": (0,)}, "top_k must hold integers from 1, not 0"),
        ({"measures": ()}, "measures must be distinct, at least one"),
        (
            {"measures": ("confidence",)},
            "measure must be one of learned, entropy, .*, not 'confidence'",
        ),
        ({"serve": {2: "entropy"}}, r"serve must name events of top_k \(1, 5\), not 2"),
        (
            {"measures": ("supplied:x",)},
            "serve must name a measure for Top-1: a supplied",
        ),
        ({"serve": {1: "energy"}}, "serve must name one of the measures .*, not 'energy'"),
        ({"bins": 0}, 'bins must be "auto" or an integer from 1, not 0'),
        ({"bins": True}, "bins must be"),
        ({"lookup": "linear"}, "lookup must be one of smooth, interpolated, step, not 'linear'"),
        ({"prior_strength": 0.0}, "prior_strength must be above 0 and finite, not 0.0"),
        ({"folds": 1}, "folds must be an integer from 2, not 1"),
        ({"targets": (0.9, 1.0)}, r"targets must lie in \(0, 1\)"),
        ({"targets": (0.9, 0.9)}, "targets must fall"),
        ({"ood_level": 1.0}, r"ood_level must lie in \(0, 1\), not 1.0"),
    ],
)
def test_a_broken_rule_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        FitOptions(**wrong)
