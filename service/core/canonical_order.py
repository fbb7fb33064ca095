"""One order of the samples, whatever the one they came in."""

import numpy as np

from service.core.records import Records


def in_canonical_order(records: Records) -> Records:
    """Return the records by tie key, so that sums and folds see one order of the samples.

    Samples that share a key are told apart by what else is used of them; those that agree in all
    of it are exchangeable.
    """
    families = (records.uncertainty, records.mean_log_probability, records.mean_label_rank)
    others = [family[name] for family in families for name in sorted(family)]
    return records.take(np.lexsort((*others, records.label_rank, records.tie_key)))
