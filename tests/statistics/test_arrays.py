"""Arrays and imports: what the statistics take, and what they load."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure.statistics
from howsure.statistics.arrays import as_hits, as_labels, as_scores, as_uncertainty, mean_of


def labels_of_two(values):
    return as_labels(np.array(values), n_samples=2, n_classes=3)


def hits_of_two(values):
    return as_hits(values, n_samples=2)


@pytest.mark.parametrize(("check", "values", "rule"), [
    (as_scores, [1.0, 2.0], r"shape \(n_samples, n_classes >= 2\), not \(2,\)"),
    (as_scores, [[1.0]], r"not \(1, 1\)"), (as_scores, [[1.0, 2.0], [np.nan, 0.0]], "row 1 is not"),
    (as_scores, [[np.inf, 0.0]], "row 0 is not"), (as_scores, [[-np.inf, -np.inf]], "row 0 is not"),
    (labels_of_two, [0, 3], r"\[0, 3\): row 1 holds 3"), (labels_of_two, [-1, 0], "row 0 holds -1"),
    (labels_of_two, [0.0, 1.0], "must be integers, not float64"),
    (labels_of_two, [0], r"\(2,\), not \(1,\)"), (as_uncertainty, [[1.0]], r"\(n_samples,\)"),
    (as_uncertainty, [0.0, np.nan], "row 1 holds nan"), (as_uncertainty, [-np.inf], "row 0 holds"),
    (as_uncertainty, [1e39], "row 0 holds inf"),  # in float32
    (hits_of_two, [2, 0], "booleans"), (hits_of_two, [True], r"shape \(2,\)"),
])  # fmt: skip
def test_invalid_arrays_are_refused(check, values, rule):
    with pytest.raises(ValueError, match=rule):
        check(values)


def test_other_types_are_converted():
    assert as_scores(np.float16([[0, -np.inf]])).dtype == np.float64
    assert labels_of_two(np.uint8([0, 2])).dtype == np.int64
    assert hits_of_two([1, 0]).tolist() == [True, False]


def packages(paths):
    """Return the packages outside the standard library that modules import, also in functions."""
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def test_no_other_package_is_loaded():
    folder = Path(howsure.statistics.__file__).parent
    assert packages(folder.rglob("*.py")) == {"howsure", "numpy", "scipy"}


# What a locked process needs, which cannot load anything later.
OF_THE_CHILD = (
    "arrays", "measures", "softmax", "records", "bins.edges", "bins.lookup", "measures.noise",
    "measures.passes",
)  # fmt: skip
LOADED = "print(*(own.__file__ for name, own in sys.modules.items() if name[:7] == 'howsure'))"


@pytest.mark.process
def test_a_locked_process_loads_numpy_alone():
    names = ", ".join(f"howsure.statistics.{name}" for name in OF_THE_CHILD)
    command = [sys.executable, "-c", f"import sys, {names}; {LOADED}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert packages(map(Path, found)) == {"howsure", "numpy"}


def test_a_weighted_mean_lies_between_the_values():
    """The share of samples that are all hits is 1, or its entropy would be infinite."""
    rng = np.random.default_rng(1)
    for _ in range(500):
        weights = rng.uniform(0.1, 3.0, rng.integers(1, 200))
        value = rng.random()
        assert mean_of(np.full(len(weights), value), weights) == value
        assert mean_of(np.ones(len(weights), bool), weights) == 1.0
