"""The measures that were asked for against what the model and the sets give."""

from collections.abc import Sequence

from service.core.fit import FitOptions
from service.core.measures import SUPPLIED, check_measures, is_supplied
from service.errors import InvalidConfig
from service.operations.config import CalibrationConfig

PLACE = "config.measures"


def checked_options(
    config: CalibrationConfig, top_k: tuple[int, ...], *, logits: bool, supplied: Sequence[str]
) -> FitOptions:
    """Return the options of the fit, every measure of which there is.

    Parameters
    ----------
    logits
        Whether the scores of the classes are logits.
    supplied
        Names of the columns ``uncertainty_<name>`` that come with every set.

    Raises
    ------
    InvalidConfig
        If a measure needs logits where there are none, is supplied by no set, or an event is left
        with nothing to serve it.
    """
    for measure in config.measures:
        if is_supplied(measure) and measure.removeprefix(SUPPLIED) not in supplied:
            name = measure.removeprefix(SUPPLIED)
            given = ", ".join(f"uncertainty_{found}" for found in supplied) or "none"
            raise InvalidConfig.at(
                PLACE,
                f"{measure} needs a column uncertainty_{name} in every set; they hold {given}",
            )
    try:
        check_measures(config.measures, logits=logits)
        return config.fit_options(top_k)
    except ValueError as error:
        raise InvalidConfig.at(PLACE, str(error)) from error
