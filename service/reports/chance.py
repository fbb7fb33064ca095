"""Calibration errors that chance alone explains."""

from collections.abc import Mapping
from typing import Any


def is_chance(judged: Mapping[str, Any]) -> bool:
    """Tell whether a calibration error is not distinguishable from that of a calibrated method.

    Parameters
    ----------
    judged
        A measure or baseline of a report, with the band of its calibration error.
    """
    evaluated = judged["evaluation"] is not None
    band = judged.get("evaluation_ece_band" if evaluated else "ece_band")
    return band is not None and bool(band["consistent"])
