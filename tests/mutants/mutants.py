"""Deliberate errors in the statistics, each of which some test must find.

    PYTHONPATH=tests/mutants python -m mutants [NAME ...]

Each error is one replaced text in a temporary copy of the package; the working tree is left alone.
The tests named beside it run against the copy. Prints ``killed`` or ``SURVIVED`` and the seconds;
the exit status is 1 if an error survives. First the tests must pass on an unchanged copy.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED, FAILED = 0, 1  # exit statuses of pytest


@dataclass(frozen=True)
class Mutant:
    """An error: in a file of ``howsure/statistics``, a text, and what replaces it."""

    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]  # below tests/; at least one must fail

    @property
    def name(self) -> str:
        """The file without its suffix, which no two mutants share."""
        return self.file.removesuffix(".py")

    def apply(self, package: Path) -> None:
        """Replace the text, which must stand once in the file."""
        path = package / "statistics" / self.file
        source = path.read_text(encoding="utf-8")
        if source.count(self.text) != 1:
            raise LookupError(f"{self.file} must hold once: {self.text}")
        path.write_text(source.replace(self.text, self.replacement), encoding="utf-8")


# fmt: off
MUTANTS = (
    Mutant("ranking.py", "shares * (1.0 - 1e-12)", "shares",
           ("statistics/selection/test_thresholds.py",)),
    Mutant("bins/edges.py", 'edges[1:-1], values, side="left"', 'edges[1:-1], values, side="right"',
           ("statistics/bins/test_edges.py",)),
    Mutant("bins/intervals.py", "np.where(hits > 0, betaincinv(some, misses + 1, tail), 0.0)",
           "np.where(hits > 0, betaincinv(some, misses + 1, 2.0 * tail), 0.0)",
           ("oracles/test_interval_numbers.py",)),
    Mutant("bins/prior.py", "return 0.5 if self.degenerate else self.accuracy",
           "return self.accuracy", ("statistics/bins/test_smooth.py::test_one_point",)),
    Mutant("effective.py", "yield from (np.square(weights),", "yield from (weights,",
           ("statistics/selection/test_effective.py",)),
    Mutant("effective.py", "(seen * rho + 1.0) / (seen + 1.0)", "rho",
           ("statistics/selection/test_effective.py::test_a_threshold_of_groups_is_by_the_book",)),
    Mutant("selective.py", "<= level\n    failures", "<= target.delta\n    failures",
           ("statistics/selection/test_selective.py",)),
    Mutant("records/order.py", "np.lexsort((_scattered(tie_keys, hits), hits))",
           "np.argsort(tie_keys)", ("statistics/records/test_order.py",)),
    Mutant("calibrators/isotonic.py", "isotonic_regression(rates, weights=counts)",
           "isotonic_regression(rates)", ("statistics/calibrators/test_calibrators.py",)),
    Mutant("measures/single_pass.py", "(ranked.tails[:, 0] + second) / ranked.total",
           "ranked.tails[:, 0] / ranked.total", ("oracles/test_measures_in_decimal.py",)),
    Mutant("scores/ranking.py", "hits, errors = judged.by_uncertainty.block_weights\n    counts",
           "ranked = judged.by_uncertainty\n    hits, errors = ranked.block_hits, ranked.errors\n"
           "    counts",
           ("statistics/scores/test_ranking.py",)),
    Mutant("scores/binned_error.py", "rates * (1.0 - rates) / (counts - 1.0)",
           "rates * (1.0 - rates) / counts",
           ("statistics/scores/test_calibration_errors.py::test_the_debiased_square",)),
    Mutant("label_model/search.py", "for rows in (~held, held)", "for rows in (held | True, held)",
           ("statistics/label_model/test_label_model.py::test_no_coefficient_depends_on_a_label",)),
    Mutant("shift/gap.py", "corrected = alone +", "corrected = 0.0 * alone +",
           ("statistics/shift/test_gap.py",)),
    Mutant("findings/scores.py", "np.bincount(design.groups(hits.size), influence)", "influence",
           ("statistics/findings/test_scores.py::test_rows_of_one_group_count_as_one",)),
)
# fmt: on


def run_tests(tests: tuple[str, ...], mutant: Mutant | None) -> int:
    """Return pytest's exit status on a copy of the package with a mutant, or without one."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "howsure")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "howsure", package, ignore=ignored)
        if mutant is not None:
            mutant.apply(package)
        # Without the suite's conftest, which loads the service: hypothesis knows the profile `ci`.
        arguments = ["--noconftest", "-p", "no:cacheprovider", "-q", "-x", "--no-header"]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", *arguments, "--hypothesis-profile=ci", *tests],
            cwd=ROOT / "tests",
            env={**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    outcome = {PASSED: " passed", FAILED: "1 failed"}.get(done.returncode)
    if outcome is None or outcome not in done.stdout:
        raise RuntimeError(f"pytest did not run the tests:\n{done.stdout}{done.stderr}")
    return done.returncode


def main(names: list[str]) -> int:
    """Run the mutants of these names, or all; return the exit status."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    tests = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
    if run_tests(tests, None) != PASSED:
        raise RuntimeError("the tests fail without any mutant")
    survivors = 0
    for mutant in chosen:
        begun = time.monotonic()
        is_killed = run_tests(mutant.tests, mutant) == FAILED
        survivors += not is_killed
        verdict = "killed" if is_killed else "SURVIVED"
        print(f"{verdict:8} {time.monotonic() - begun:5.1f} s  {mutant.name}", flush=True)  # noqa: T201
    return int(survivors > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
