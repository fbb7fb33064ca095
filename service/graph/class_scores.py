"""The class scores of a model, as its outputs hold them."""

from howsure.onnx_head.builder import GraphBuilder
from service.graph.description import OutputChoice


def class_scores(build: GraphBuilder, tensor: str, choice: OutputChoice) -> str:
    """Return the scores, shape (n, n_classes), in the head's precision.

    Float16 is converted to float32. Flatten accepts (n,), (n, 1), (n, K) and (n, K, 1, 1). For a
    binary model with one column, a probability p becomes (1 - p, p) and a logit z becomes (0, z).
    """
    scores = build.add("Flatten", build.add("Cast", tensor, to=build.element_type), axis=1)
    if choice.positive_column is None:
        return scores
    positive = build.columns(scores, choice.positive_column, choice.positive_column + 1)
    if choice.kind == "probabilities":
        other = build.add("Sub", build.number(1), positive)
    else:
        # Zeros of the same shape; 0 * z would be NaN at an infinite z.
        nowhere = build.add("Less", positive, positive)
        other = build.add("Cast", nowhere, to=build.element_type)
    return build.add("Concat", other, positive, axis=1)
