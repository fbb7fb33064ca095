"""What measures need, in a few words each."""

from collections.abc import Mapping

from service.core.measures import OUTPUT, SUPPLIED, is_output, is_supplied

_SOFTMAX = "probabilities"
NEEDS: Mapping[str, str] = {
    "entropy": _SOFTMAX,
    "neg_log_pmax": _SOFTMAX,
    "neg_log_topk_mass": _SOFTMAX,
    "margin": _SOFTMAX,
    "energy": "logits",
    "dropout_variance": "a model with Dropout nodes, and runs of it with them",
    "last_layer_dropout_variance": "an ONNX model, and runs of its last layer with dropout",
    "ensemble_variance": "several models, or runs of one that draws at random",
    "gradient_norm": "the model's gradient, by runs beside each row",
}
SUPPLIED_NEEDS = "a column {} beside the samples; it serves only where it is asked for"
OUTPUT_NEEDS = "the output {} of the model"


def needs_of(measure: str) -> str:
    """Return what there has to be for a measure; nothing is said of what is not known."""
    if is_supplied(measure):
        return SUPPLIED_NEEDS.format(f"uncertainty_{measure.removeprefix(SUPPLIED)}")
    if is_output(measure):
        return OUTPUT_NEEDS.format(measure.removeprefix(OUTPUT))
    return NEEDS.get(measure, "")
