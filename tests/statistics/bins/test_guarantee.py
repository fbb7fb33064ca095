"""The guarantee for all bins."""

import numpy as np
import pytest

from howsure.statistics.bins.edges import edges_cut_ties
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.guarantee import guarantee


def fitted(n_samples=5000, n_bins=15, **options):
    rng = np.random.default_rng(5)
    uncertainty = rng.permutation(n_samples).astype(np.float32)
    hits = rng.random(n_samples) > uncertainty / n_samples
    return fit_bin_table(uncertainty, hits, n_bins=n_bins, **options)


def test_number_of_the_paper_s_formula():
    found = guarantee(fitted(), fixed=True, n_candidate_bins=0, alpha=0.05, ties=False)

    assert found.width == pytest.approx(0.09815, abs=5e-6)
    assert found.n_compared == 15
    assert found.reasons == ()
    assert "probability 0.95" in found.sentence
    assert "±0.09815" in found.sentence


def test_bins_that_were_chosen_pay_for_all_candidates():
    found = guarantee(fitted(), fixed=False, n_candidate_bins=1232, alpha=0.05, ties=False)

    assert found.width == pytest.approx(np.sqrt(np.log(2 * 1232 / 0.05) / (2 * 332)))
    assert found.n_compared == 1232


@pytest.mark.parametrize(
    ("options", "ties", "reason"),
    [
        ({}, True, "falls among samples of equal uncertainty"),
        ({"monotone": True}, False, "pooled"),
        ({"lookup": "interpolated"}, False, "pooled"),
        ({"n_samples": 20}, False, "1 sample:"),
        ({"n_samples": 10}, False, "fewer bins were created than requested"),
        ({"n_samples": 60}, False, "promise nothing"),
    ],
)
def test_a_condition_that_fails_is_named_in_place_of_the_number(options, ties, reason):
    found = guarantee(fitted(**options), fixed=True, n_candidate_bins=15, ties=ties)

    assert found.width is None
    assert reason in "; ".join(found.reasons)
    assert found.sentence.startswith("No guarantee")
    assert reason in found.sentence


def test_holds_for_all_bins_in_simulation():
    """Bins fitted on the same data; the true rate of a bin is known from its edges."""
    rng = np.random.default_rng(11)
    broken = 0
    for _ in range(300):
        uncertainty = rng.random(500).astype(np.float32)
        hits = rng.random(500) > uncertainty
        table = fit_bin_table(uncertainty, hits, n_bins=10)
        width = guarantee(table, fixed=True, n_candidate_bins=0, alpha=0.1, ties=False).width
        edges = np.clip(table.edges, 0.0, 1.0).astype(np.float64)
        truth = 1.0 - (edges[1:] + edges[:-1]) / 2.0
        broken += bool((np.abs(truth - table.hit_rates) > width).any())

    assert broken / 300 <= 0.1


def test_an_edge_that_cuts_no_ties_keeps_the_number():
    """Ten blocks of ten equal values: five edges fall between blocks, seven do not."""
    blocks = np.repeat(np.arange(10, dtype=np.float32), 10)
    assert not edges_cut_ties(blocks, 5)
    assert edges_cut_ties(blocks, 7)
    assert not edges_cut_ties(np.random.default_rng(0).permutation(blocks), 5)


def test_holds_with_ties_that_no_edge_cuts_in_simulation():
    """Half of the samples are tied at zero: the middle edge of four bins is the end of the block.

    The number of tied samples is random, so most runs are refused; the others keep the promise.
    """
    rng = np.random.default_rng(12)
    broken, promised = 0, 0
    for _ in range(2000):
        uncertainty = np.maximum(rng.random(200) - 0.5, 0.0).astype(np.float32)
        hits = rng.random(200) > uncertainty
        ties = edges_cut_ties(uncertainty, 2)
        table = fit_bin_table(uncertainty, hits, n_bins=2)
        width = guarantee(table, fixed=True, n_candidate_bins=0, alpha=0.1, ties=ties).width
        if width is None:
            continue
        promised += 1
        edge = float(table.edges[1])
        truth = np.array([(0.5 + edge * (1 - edge / 2)) / (0.5 + edge), 1 - (edge + 0.5) / 2])
        broken += bool((np.abs(truth - table.hit_rates) > width).any())

    assert promised > 500
    assert broken / promised <= 0.1
