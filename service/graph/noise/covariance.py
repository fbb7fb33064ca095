"""The covariance of several passes, as nodes of the graph."""

import math

from howsure.onnx_head.builder import GraphBuilder

EIGENVALUE_TOLERANCE = 5e-5
# Smaller ratios to the largest deviation do not affect the squares, and are slow (denormal).
LEAST_DEVIATION = 1e-15


def covariance_norm(
    build: GraphBuilder, probabilities: str, *, n_passes: int, n_classes: int
) -> str:
    """Return the 2-norm of the sample covariance over passes, shape (n, 1).

    It is the largest eigenvalue of the smaller Gram matrix of the deviations, of size
    ``d = min(n_passes, n_classes)``. After ``s`` squarings the Rayleigh quotient weighs each
    eigenvalue by its ``2**s``-th power. Its relative error is at most
    ``log(1 + (d - 1) / e) / 2**s`` (the maximum of ``a x / (a + exp x) / 2**s`` with
    ``a = d - 1``, which is ``W(a / e) / 2**s`` with Lambert's W), and ``s`` is chosen for less than
    5e-5. The result is exact if all variance is in one direction.

    It is precise for nearly certain passes, because the deviation of the leading class is computed
    as minus the sum of the others. Equal passes give 0; NaN stays NaN.

    Parameters
    ----------
    probabilities
        Shape (n, n_passes, n_classes).
    """
    deviations = _deviations(build, probabilities, n_passes, n_classes)
    scale = build.largest(build.add("Abs", deviations), [1, 2])
    scaled = build.add("Div", deviations, _not_zero(build, scale))
    is_nothing = build.add("Less", build.add("Abs", scaled), build.number(LEAST_DEVIATION))
    scaled = build.add("Where", is_nothing, build.number(0), scaled)
    transposed = build.add("Transpose", scaled, perm=[0, 2, 1])
    pair = (scaled, transposed) if n_passes <= n_classes else (transposed, scaled)
    trace = build.sums(build.add("Mul", scaled, scaled), [1, 2])
    gram = build.add("MatMul", *pair)
    largest = _largest_eigenvalue(build, gram, trace, min(n_passes, n_classes))
    variance = build.add("Div", largest, build.number(n_passes - 1))
    for _ in range(2):  # one by one: the square alone might underflow
        variance = build.add("Mul", scale, variance)
    is_same = build.add("Equal", trace, build.number(0))
    result = build.add("Where", is_same, build.number(0), variance)
    return build.add("Reshape", result, build.integers([-1, 1]))


def _deviations(build: GraphBuilder, probabilities: str, n_passes: int, n_classes: int) -> str:
    # Relative to the first pass, because the rounded mean of equal numbers may differ from them.
    change = build.add("Sub", probabilities, build.columns(probabilities, 0, 1))
    mean = build.add("Div", build.sums(change, [1]), build.number(n_passes))
    deviations = build.add("Sub", change, mean)
    totals = build.sums(probabilities, [1])
    totals = build.add("Reshape", totals, build.integers([-1, n_classes]))
    leader = build.add("Reshape", build.top(totals, 1, n_classes)[1], build.integers([-1, 1, 1]))
    leads = build.add("Equal", build.integers(range(n_classes)), leader)
    others = build.add("Where", leads, build.number(0), deviations)
    return build.add("Where", leads, build.add("Neg", build.sums(others, [2])), others)


def _largest_eigenvalue(build: GraphBuilder, gram: str, trace: str, size: int) -> str:
    """Return the largest eigenvalue of each nonzero matrix, shape (n, 1, 1)."""
    power = build.add("Div", gram, _not_zero(build, trace))
    for _ in range(n_squarings(size)):
        # The trace of the square of a symmetric matrix is the sum of its squared entries.
        total = build.sums(build.add("Mul", power, power), [1, 2])
        power = build.add("Div", build.add("MatMul", power, power), total)
    return build.sums(build.add("Mul", power, gram), [1, 2])


def n_squarings(size: int) -> int:
    """Return the number of squarings needed for a matrix of this size."""
    return math.ceil(math.log2(math.log1p((size - 1) / math.e) / EIGENVALUE_TOLERANCE))


def _not_zero(build: GraphBuilder, values: str) -> str:
    is_zero = build.add("Equal", values, build.number(0))
    return build.add("Where", is_zero, build.number(1), values)
