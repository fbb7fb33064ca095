"""The guarantee for all bins."""

import numpy as np
import pytest

from howsure.report.words.guarantees import guarantee_in_words
from howsure.statistics.bins.edges import edges_cut_ties
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.guarantee import guarantee


def guarantee_of(*, n_samples=5000, ties=False, n_candidate_bins=0, learned=False, **options):
    rng = np.random.default_rng(5)
    uncertainty = rng.permutation(n_samples).astype(np.float32)
    hits = rng.random(n_samples) > uncertainty / n_samples
    table = fit_bin_table(uncertainty, hits, n_bins=15, **options)
    about = {"fixed": n_candidate_bins == 0, "ties": ties, "learned": learned}
    return guarantee(table, n_candidate_bins=n_candidate_bins, **about)


def test_number_of_the_paper_s_formula_where_bins_that_were_chosen_pay_for_all_candidates():
    found = guarantee_of()
    assert found.width == pytest.approx(0.09815, abs=5e-6)
    assert (found.n_compared, found.reasons) == (15, ())
    found = guarantee_of(n_candidate_bins=1232)
    assert found.width == pytest.approx(np.sqrt(np.log(2 * 1232 / 0.05) / (2 * 332)))
    assert found.n_compared == 1232


def test_a_condition_that_fails_is_named_in_place_of_the_number(golden):
    failing = {
        "ties": {"ties": True},
        "pooled": {"monotone": True},
        "interpolated": {"lookup": "interpolated"},
        "learned": {"learned": True},
        "20 samples": {"n_samples": 20},
        "10 samples": {"n_samples": 10},
        "60 samples": {"n_samples": 60},
    }
    sentences = [f"kept: {guarantee_in_words(guarantee_of()).sentence}"]
    for name, options in failing.items():
        found = guarantee_of(**options)
        assert found.width is None
        assert found.reasons
        sentences.append(f"{name}: {guarantee_in_words(found).sentence}")
    golden("statistics/guarantees.txt", "\n".join(sentences))


@pytest.mark.parametrize(("n_samples", "n_bins", "tied", "runs"), [
    (500, 10, 0.0, 300), (200, 2, 0.5, 800),
])  # fmt: skip
def test_holds_for_all_bins_in_simulation(n_samples, n_bins, tied, runs):
    """Bins fitted on the same data; the true rate of a bin is known from its edges.

    Where half of the samples are tied at zero, the edge of two bins is the end of the block. The
    number of tied samples is random, so most runs are refused; the others keep the promise.
    """
    rng, broken, promised = np.random.default_rng(11), 0, 0
    for _ in range(runs):
        uncertainty = np.maximum(rng.random(n_samples) - tied, 0.0).astype(np.float32)
        hits = rng.random(n_samples) > uncertainty
        ties = edges_cut_ties(uncertainty, n_bins)
        table = fit_bin_table(uncertainty, hits, n_bins=n_bins)
        width = guarantee(table, fixed=True, n_candidate_bins=0, alpha=0.1, ties=ties).width
        if width is None:
            continue
        promised += 1
        edges = np.clip(table.edges, 0.0, 1.0 - tied).astype(np.float64)
        # Integral of 1 - u and mass up to an edge; the first bin also holds the tied samples.
        area, mass = tied + edges - edges**2 / 2.0, tied + edges
        area[0] = mass[0] = 0.0
        truth = np.diff(area) / np.diff(mass)
        broken += bool((np.abs(truth - table.hit_rates) > width).any())
    assert promised > runs / 4
    assert broken / promised <= 0.1
