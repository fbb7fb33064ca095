"""What Ding et al. show about ranking models by how they rank their errors."""

import numpy as np

from howsure.statistics.scores import SCORES, Predictions


def densenet(m):
    """A network like one on CIFAR-10 whose ``m`` least confident right answers are made wrong.

    94 % of 10,000 answers are right; log U of right and wrong ones is normal, so far apart that a
    wrong answer is the less certain in nine of ten pairs.
    """
    rng = np.random.default_rng(10)
    hits = np.arange(10_000) < 9_400
    centre, width = np.where(hits, -4.7, -0.9), np.where(hits, 2.4, 1.2)
    uncertainty = np.exp(np.minimum(rng.normal(centre, width), 0.8)).astype(np.float32)
    least_confident = np.argsort(np.where(hits, uncertainty, -np.inf), kind="stable")[::-1]
    hits[least_confident[:m]] = False
    return uncertainty, hits


def test_densenet_m_of_table_1():
    """A model that errs more is worse; AURC says so, AUROC and AUPR say the contrary.

    The text of Ding et al. turns the most certain answers wrong; their table fits the least
    certain alone.
    """
    scores = {"aurc": [], "auroc": [], "aupr": []}
    for m in (0, 20, 100, 300):
        uncertainty, hits = densenet(m)
        judged = Predictions(uncertainty=uncertainty, hits=hits, probability=np.exp(-uncertainty))
        for name, values in scores.items():
            values.append(SCORES[name].compute(judged))
    assert 0.87 < scores["auroc"][0] < 0.93
    assert 0.3 < scores["aupr"][0] < 0.5
    # Larger is worse for AURC, which is right; larger is better for the others: backwards.
    assert all((np.diff(values) > 0).all() for values in scores.values())
