"""Several reports, and how each calibration compares with the first."""

from typing import Any

from howsure.report.parts import Part
from howsure.report.report import Report


class Comparisons(Part, frozen=True, kw_only=True):
    """Several reports, and each calibration compared with the first.

    Attributes
    ----------
    calibrations : list of Report
        In the requested order.
    comparisons : list of dict
        How each compares with the first: the set, the scores on it, differences by event, and
        sentences.
    """

    calibrations: list[Report]
    comparisons: list[dict[str, Any]]
