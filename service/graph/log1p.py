"""The logarithm of 1 + y, which ONNX has no operator for."""

from service.graph.builder import GraphBuilder


def log1p(build: GraphBuilder, y: str) -> str:
    """Return log(1 + y) for y >= 0, exact to a few units in the last place.

    ``u = 1 + y`` is rounded, and ``(y - (u - 1)) / u`` makes good for it, to first order: what it
    leaves out is less than the square of the rounding. ``Softplus`` will not do in its place: on
    CUDA it is ``log(exp(a) + 1)``, zero below 1e-7.
    """
    one = build.number(1)
    u = build.add("Add", y, one)
    lost = build.add("Sub", y, build.add("Sub", u, one))
    return build.add("Add", build.add("Log", u), build.add("Div", lost, u))
