"""Measures beyond the softmax: the energy of logits, and columns that came with the samples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from score_strategies import simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.records.build import build_records, score_uncertainty
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import Records, concatenate


def drawn(n_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, 8)) * 3.0 + rng.normal(size=(n_samples, 1))
    return logits, rng.integers(0, 8, n_samples)


def records_of(scores, labels, **options):
    return build_records(scores, labels, tie_keys=tie_keys(scores, 0), top_k=(1,), **options)


class TestEnergy:
    def test_is_minus_the_log_of_the_sum_of_exponentials(self):
        logits, _ = drawn()
        found = score_uncertainty(logits, top_k=(1,), logits=True)["energy"]
        np.testing.assert_allclose(found, -logsumexp(logits, axis=1), rtol=1e-6)
        assert (found < 0).any()

    @pytest.mark.parametrize("extreme", [1e300, -1e300])
    def test_stays_within_float32(self, extreme):
        found = score_uncertainty(np.full((1, 3), extreme), top_k=(1,), logits=True)["energy"]
        assert np.isfinite(found).all()

    def test_is_left_out_unless_the_scores_are_logits(self):
        logits, labels = drawn()
        assert "energy" not in records_of(logits, labels).uncertainty
        assert "energy" in records_of(logits, labels, logits=True).uncertainty


class TestSupplied:
    @staticmethod
    def supplied(records):
        """The chance of an error, as an oracle would supply it."""
        noise = np.random.default_rng(0).normal(size=records.n_samples) * 0.1
        return (~records.hits(1)) + noise

    def test_is_a_column_that_travels_with_the_records(self):
        records = simulated_records(40, seed=1, top_k=(1,))
        values = self.supplied(records)
        given = records.with_supplied({"teacher": values})
        back = Records.from_arrays(given.to_arrays())
        np.testing.assert_array_equal(
            back.uncertainty["supplied_teacher"], values.astype(np.float32)
        )
        assert concatenate([given, given]).uncertainty["supplied_teacher"].shape == (80,)
        assert "supplied_teacher" not in records.uncertainty

    def test_is_fitted_and_serves_only_where_it_is_named(self):
        records = simulated_records(400, seed=1, top_k=(1,))
        records = records.with_supplied({"teacher": self.supplied(records)})
        options = FitOptions(top_k=(1,), measures=("entropy", "supplied:teacher"), bins=4)
        event = fit_calibration(records, options=options).events[1]
        losses = {name: m.scores["nll"].mean for name, m in event.measures.items()}
        assert losses["supplied:teacher"] < losses["entropy"]
        assert event.served == "entropy"
        named = replace(options, serve={1: "supplied:teacher"})
        assert fit_calibration(records, options=named).events[1].served == "supplied:teacher"

    @pytest.mark.parametrize("bad", [np.full(40, np.nan), np.full(40, 1e39)])
    def test_what_float32_cannot_hold_is_refused(self, bad):
        records = simulated_records(40, seed=1, top_k=(1,))
        with pytest.raises(ValueError, match="uncertainty must be finite: row 0"):
            records.with_supplied({"teacher": bad})
