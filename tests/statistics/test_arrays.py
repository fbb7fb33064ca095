"""Arrays and imports: what the statistics take, and what they load."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure.statistics
from howsure.statistics.arrays import as_hits, as_labels, as_scores, as_uncertainty

FOLDER = Path(howsure.statistics.__file__).parent


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


def imports(path):
    """Yield the names of the modules that a module imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def loaded(paths):
    """Return the packages outside the standard library that these modules load in the end."""
    packages, seen, waiting = set(), set(), list(paths)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports(path):
            root, *parts = name.split(".")
            if root != "howsure":
                packages.add(root)
                continue
            own = FOLDER.parent.joinpath(*parts)
            waiting += [p for p in (own.with_suffix(".py"), own / "__init__.py") if p.is_file()]
            parents = [parent / "__init__.py" for parent in own.parents]
            waiting += [p for p in parents if p.is_relative_to(FOLDER) and p.is_file()]
    return packages - sys.stdlib_module_names


# What a locked process needs, which cannot load anything later.
OF_THE_CHILD = (
    "arrays.py", "measures/__init__.py", "softmax.py", "records/__init__.py", "bins/edges.py",
    "bins/lookup.py", "measures/noise.py", "measures/passes.py",
)  # fmt: skip


def test_no_other_package_is_loaded():
    assert loaded(FOLDER.rglob("*.py")) == {"numpy", "scipy"}
    assert loaded(FOLDER / name for name in OF_THE_CHILD) == {"numpy"}
