"""Whether the set is too small for the bins asked for."""

from service.core.candidates import LEAST_SAMPLES_PER_BIN, candidate_bins
from service.core.findings.evidence import LabelledSet
from service.core.findings.finding import Finding

CODE = "few-samples-for-bins"


def few_samples_for_bins(labelled: LabelledSet, /) -> Finding | None:
    """Find fewer samples than 25 to a bin; with ``auto``, fewer than two bins take.

    A count, not a test: there is no chance in it.
    """
    n, bins = labelled.n_samples, labelled.bins
    least = LEAST_SAMPLES_PER_BIN
    if bins == "auto":
        if len(candidate_bins(n)) > 1:
            return None
        return Finding(
            CODE,
            "warning",
            f"One bin is all that {_samples(n)} can fill: every answer gets the same probability. "
            f"Two bins take {2 * least} samples.",
            {"samples": n, "bins": 1, "least_samples": 2 * least},
        )
    if bins == 1 or n >= least * bins:
        return None
    return Finding(
        CODE,
        "warning",
        f"{bins} bins share {_samples(n)}, about {n / bins:.3g} to a bin: fewer than {least} say "
        f"little of a probability. Ask for {max(1, n // least)} bins or fewer, or add samples.",
        {"samples": n, "bins": bins, "least_samples": least * bins},
    )


def _samples(number: int) -> str:
    return "1 calibration sample" if number == 1 else f"{number:,} calibration samples"
