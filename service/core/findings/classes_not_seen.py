"""Whether classes of the model have no label."""

import numpy as np

from service.core.findings.evidence import LabelledSet
from service.core.findings.finding import Finding

CODE = "classes-not-seen"
LEVEL = 1e-3


def classes_not_seen(labelled: LabelledSet, /) -> Finding | None:
    """Find classes of the model without a label, more than a small set leaves out by chance.

    Were all ``K`` classes equally frequent, ``n`` samples would leave out ``K (1 - 1/K)^n`` on
    average; their number is at most as spread as a Poisson number of that mean (the counts are
    negatively associated), of which so many must be among the rarest 0.1 %: that bounds the false
    alarms on balanced sets of any size. Sets with rare classes are told of what they lack, and
    rightly so. All labels are judged, however few samples were recorded.
    """
    n, n_classes = labelled.n_samples, labelled.n_classes
    missing = np.flatnonzero(labelled.class_counts == 0)
    expected = n_classes * (1.0 - 1.0 / n_classes) ** n
    from scipy.stats import poisson  # noqa: PLC0415 - half a second, and seldom asked

    if missing.size == 0 or poisson.sf(missing.size - 1, expected) > LEVEL:
        return None
    some = ", ".join(str(index) for index in missing[:5]) + ", …" * (missing.size > 5)  # noqa: PLR2004 - enough to look up
    return Finding(
        CODE,
        "notice",
        f"{missing.size:,} of the model's {n_classes:,} classes have no label among {n:,} samples: "
        f"{some}. What is said of answers that name them was learnt from other classes.",
        {"missing": int(missing.size), "classes": n_classes, "samples": n},
    )
