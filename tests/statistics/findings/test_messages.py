"""The messages of findings about a set of labelled outputs, as a golden text."""

import numpy as np
from sample_strategies import calibrated, found_in, records_of
from scipy.special import softmax


def sets():
    """Yield a name, arguments of a recorded set, and its options."""
    logits, labels = calibrated(1000, seed=2, spread=6.0)
    rng = np.random.default_rng(1)
    yield "other rows", (logits, rng.permutation(labels)), {}
    two, of_two = calibrated(400, n_classes=2, spread=4.0)
    yield "two classes exchanged", (two, 1 - of_two), {}
    yield "labels shifted", (logits, (labels + 1) % 10), {}
    yield "labels permuted", (logits, rng.permutation(10)[labels]), {}
    yield "one label", (logits[labels == 1], labels[labels == 1]), {}
    kept = ~np.isin(labels, [3, 7])
    yield "labels missing", (logits[kept], labels[kept]), {}
    yield "class never named", (logits - 60.0 * (np.arange(10) == 6), labels), {}
    rare = np.stack([np.zeros(400), -1.0 - np.logaddexp(0.0, -two[:, 0])], axis=1)
    yield "rare event", (rare, (two[:, 0] > 4.5).astype(int)), {}
    yield "no errors", (logits, logits.argmax(axis=1)), {}
    evaluation = records_of(logits[500:], rng.permutation(labels[500:]))
    yield "another set", (logits[:500], labels[:500]), {"evaluation": evaluation}
    yield "copies", (np.tile(logits, (2, 1)), np.tile(labels, 2)), {}
    again = np.tile(logits[:200], (2, 1)), np.concatenate([labels[:200], (labels[:200] + 1) % 10])
    yield "conflicts", again, {}
    yield "both sets", (logits, labels), {"evaluation": records_of(logits, labels)}
    yield "softmax twice", (softmax(logits, axis=1), labels), {}
    given = {"probabilities": True, "source": "probabilities"}
    yield "unsure probabilities", (softmax(softmax(logits, axis=1), axis=1), labels), given
    yield "one-hot answers", (np.eye(10)[logits.argmax(axis=1)], labels), given
    for n_samples, bins in ((48, "auto"), (100, 5), (1, "auto")):
        yield f"{n_samples} samples", calibrated(n_samples, seed=1), {"bins": bins}


def test_messages(golden):
    lines = []
    for name, outputs, options in sets():
        found = found_in(*outputs, **options).values()
        lines += [f"{name}:", *(f"- {one.level}, {one.code}: {one.message}" for one in found)]
    golden("statistics/findings.txt", "\n".join(lines))
