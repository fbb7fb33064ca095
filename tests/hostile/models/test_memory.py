"""Models that take more memory than they may, when they are tried or asked.

How long they take until then is the machine's: they have a service whose deadlines are far off.
"""

from collections.abc import Iterator

import httpx
import pytest
from graph_models import node, steps
from hostile_case import Attacker, HostileCase
from hostile_models import UNPROCESSABLE, loop, model_case, served
from hostile_service import HostileService, TwoTenants, hostile_service, two_tenants
from model_services import quick
from runner_models import N_FEATURES, classifier

pytestmark = pytest.mark.process

DEADLINES = ("load_timeout_seconds", "run_timeout_seconds", "predict_timeout_seconds")
PATIENT = dict.fromkeys(DEADLINES, 60.0)
FORTY_GIGABYTES = 10**10
MEMORY = "too-much-memory"
# What a model takes at the first rows is told as one of them.
ROWS = {"code": "invalid-dataset", "says": "calibration"}


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoTenants]:
    with two_tenants(tmp_path_factory.mktemp("patient"), **PATIENT) as running:
        yield running


@pytest.fixture(scope="module")
def hostile_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileService]:
    with hostile_service(tmp_path_factory.mktemp("patient"), **PATIENT) as running:
        yield running


def filled(text, **constants):
    """Return a classifier that adds what ``huge``, which the text makes, sums up to."""
    added = "sum = ReduceSum<keepdims = 0>(huge); y = Add(z, sum)"
    return classifier(*steps(f"{text}; {added}"), constants=constants)


def huge_above(limit):
    """Return a classifier that fills the memory if a row's first value is above a limit."""
    text = "m = ReduceMax<keepdims = 0>(x); above = Greater(m, limit); "
    text += f"sizes = Where(above, many, few); {ONES}"
    return filled(text, limit=limit, many=[FORTY_GIGABYTES], few=[1], half=[0.5])


ZEROS, ONES = "huge = ConstantOfShape(sizes)", "huge = Expand(half, sizes)"
DOUBLED = node("Concat", ["s", "s"], ["t"], axis=0)
MODELS = {
    "forty_gigabytes_of_zeros": lambda: filled(ZEROS, sizes=[FORTY_GIGABYTES]),
    "forty_gigabytes_of_ones": lambda: filled(ONES, half=[0.5], sizes=[FORTY_GIGABYTES]),
    "loop_that_doubles": lambda: loop("z", DOUBLED),
}
CASES = {name: model_case(name, build, MEMORY, **ROWS) for name, build in MODELS.items()}


@pytest.mark.parametrize("case", quick(CASES, "forty_gigabytes_of_zeros"))
def test_a_model_that_fills_the_memory_is_stopped(hostile, case: HostileCase) -> None:
    hostile(case)


def test_a_model_that_fills_the_memory_at_one_row_is_stopped(hostile) -> None:
    def ask(attacker: Attacker) -> httpx.Response:
        return served(attacker, huge_above(100.0), [1000.0] * N_FEATURES)

    hostile(HostileCase("at_one_row", ask, UNPROCESSABLE, "invalid-input", MEMORY, seconds=20))
