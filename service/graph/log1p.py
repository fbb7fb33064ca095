"""The logarithm of 1 + y, which ONNX has no operator for."""

from service.graph.builder import GraphBuilder


def log1p(build: GraphBuilder, y: str) -> str:
    """Return log(1 + y) for y >= 0, exact to a few units in the last place.

    Kahan's form: ``u = 1 + y`` is rounded, and ``y / (u - 1)`` makes good for it. ``Softplus``
    will not do in its place: on CUDA it is ``log(exp(a) + 1)``, zero below 1e-7.
    """
    one, zero = build.number(1), build.number(0)
    u = build.add("Add", y, one)
    rounded = build.add("Sub", u, one)
    is_tiny = build.add("Equal", rounded, zero)
    divisor = build.add("Where", is_tiny, one, rounded)
    corrected = build.add("Div", build.add("Mul", build.add("Log", u), y), divisor)
    return build.add("Where", is_tiny, y, corrected)
