"""The configuration of a set of pairs, which has one event and one measure."""

from howsure.statistics.measures import SCORE
from service.calibrations.config import CalibrationConfig
from service.errors import InvalidConfig

TOP_1 = 1
# Keys that describe classes or a model.
NOT_OF_PAIRS = ("classes", "class_map", "columns", "output")


def pairs_config(config: CalibrationConfig) -> CalibrationConfig:
    """Return the configuration with the one event and the one measure of pairs.

    Raises
    ------
    InvalidConfig
        If it asks for another event or measure, or describes classes or a model.
    """
    if config.top_k not in (None, [TOP_1]):
        raise InvalidConfig.at(
            "config.top_k", "pairs have one event, 1, that the answer is correct; leave top_k out"
        )
    asked = config.model_fields_set
    for key in NOT_OF_PAIRS:
        if key in asked and getattr(config, key):
            raise InvalidConfig.at(
                f"config.{key}", f"calibration holds pairs, which have no {key}; leave it out"
            )
    if "measures" in asked and config.measures != [SCORE]:
        raise InvalidConfig.at(
            "config.measures", f'pairs have one measure, "{SCORE}"; leave measures out'
        )
    return config.model_copy(
        update={"top_k": [TOP_1], "measures": [SCORE], "serve": {str(TOP_1): SCORE}}
    )
