"""What several ONNX models in one upload may be asked for."""

from service.core.measures import is_output, is_perturbation
from service.errors import InvalidConfig, TooLarge
from service.graph.quote import quote
from service.operations.config import CalibrationConfig
from service.operations.uploads import CalibrationUpload
from service.runner.pass_plan import ENSEMBLE

MAX_MODELS = 100


def check_ensemble(upload: CalibrationUpload, config: CalibrationConfig) -> None:
    """Refuse too many models, and measures that are of one model.

    Raises
    ------
    TooLarge, InvalidConfig
        Naming the part or the measure.
    """
    n_models = len(upload.onnx_models)
    if n_models > MAX_MODELS:
        raise TooLarge.at("model", f"expected at most {MAX_MODELS} ONNX files, got {n_models}")
    if n_models > 1:
        for measure in config.measures:
            if is_output(measure) or (is_perturbation(measure) and measure != ENSEMBLE):
                raise InvalidConfig.at(
                    "config.measures",
                    f"{quote(measure)} needs one model, and {n_models} came, an ensemble; leave "
                    f"the measure out or send one of them ({ENSEMBLE} is what several models give)",
                )
