import pytest

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import DEFAULT_MEASURES, SINGLE_PASS_MEASURES


def test_defaults():
    options = FitOptions()
    assert options.top_k == (1, 5)
    assert options.measures == DEFAULT_MEASURES == tuple(SINGLE_PASS_MEASURES)[:4]
    assert (options.bins, options.lookup, options.monotone) == ("auto", "step", False)
    assert (options.prior_strength, options.folds, options.seed) == (1.0, 10, 0)
    assert dict(options.serve) == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top_k": ()}, r"top_k must hold distinct events, at least one, not \(\)"),
        ({"top_k": (1, 1)}, r"top_k must hold distinct events.*\(1, 1\)"),
        ({"top_k": (0,)}, "top_k must hold integers from 1, not 0"),
        ({"measures": ()}, "measures must be distinct, at least one"),
        ({"measures": ("margin", "margin")}, "measures must be distinct"),
        ({"measures": ("confidence",)}, "measure must be one of entropy, .*, not 'confidence'"),
        ({"serve": {2: "entropy"}}, r"serve must name events of top_k \(1, 5\), not 2"),
        (
            {"measures": ("supplied:x",)},
            "serve must name a measure for Top-1: a supplied",
        ),
        ({"serve": {1: "energy"}}, "serve must name one of the measures .*, not 'energy'"),
        ({"bins": 0}, 'bins must be "auto" or an integer from 1, not 0'),
        ({"bins": True}, "bins must be"),
        ({"lookup": "linear"}, "lookup must be one of step, interpolated, not 'linear'"),
        ({"prior_strength": 0.0}, "prior_strength must be above 0 and finite, not 0.0"),
        ({"folds": 1}, "folds must be an integer from 2, not 1"),
        ({"targets": ()}, r"targets must lie in \(0, 1\), at least one, not \(\)"),
        ({"targets": (0.9, 1.0)}, r"targets must lie in \(0, 1\)"),
        ({"targets": (0.9, 0.9)}, "targets must fall"),
        ({"ood_level": 1.0}, r"ood_level must lie in \(0, 1\), not 1.0"),
    ],
)
def test_a_broken_rule_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        FitOptions(**wrong)
