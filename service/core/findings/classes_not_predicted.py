"""Whether the model never names some of the classes that the labels have."""

import numpy as np

from service.core.findings.evidence import Evidence
from service.core.findings.finding import Finding

CODE = "classes-not-predicted"
LEVEL = 1e-3
WARNING_SHARE = 0.5


def classes_not_predicted(evidence: Evidence) -> Finding | None:
    """Find labelled classes that the model names for no sample at all.

    If each class were recognised at least half as often as all are on average, with accuracy ``a``,
    one with ``n_c`` labels would never be named with a probability of at most ``(1 - a/2)^n_c``;
    the sum over the classes bounds the mean number of such classes, and a Poisson number of that
    mean must reach what was found at most one time in 1,000. Small sets, many classes and a model
    near chance are therefore silent. It takes all samples: the first few may leave classes out.
    From half of the labelled classes on it is a warning.
    """
    if not evidence.is_whole:
        return None
    counts = np.bincount(evidence.predicted, minlength=evidence.n_classes)
    labelled = evidence.class_counts > 0
    never = np.flatnonzero(labelled & (counts == 0))
    chances = (1.0 - evidence.accuracy / 2.0) ** evidence.class_counts[labelled]
    from scipy.stats import poisson  # noqa: PLC0415 - half a second, and seldom asked

    if never.size == 0 or poisson.sf(never.size - 1, float(chances.sum())) > LEVEL:
        return None
    n_labelled, samples = int(labelled.sum()), int(evidence.class_counts[never].sum())
    some = ", ".join(str(index) for index in never[:5]) + ", …" * (never.size > 5)  # noqa: PLR2004 - enough to look up
    return Finding(
        CODE,
        "warning" if never.size >= WARNING_SHARE * n_labelled else "notice",
        f"{never.size:,} of {n_labelled:,} labelled classes are named for none of "
        f"{evidence.n_samples:,} samples: {some}. {samples:,} samples have these labels, and none "
        "of their answers can be right.",
        {
            "never_predicted": int(never.size),
            "labelled_classes": n_labelled,
            "samples_of_them": samples,
            "samples": evidence.n_samples,
        },
    )
