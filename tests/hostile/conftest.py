"""What every hostile case has to leave as it was, in one place.

To add a case, write a `HostileCase` into the table of the file it belongs to; there are functions
for the most frequent ones::

    CASES = [
        set_case("csv_of_nul_bytes", lambda: bytes(1000), UNREAD),
        HostileCase("no_json", lambda attacker: attacker.predict(b"{"), *MALFORMED),
    ]


    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_it_is_refused(hostile, case) -> None:
        hostile(case)

``hostile`` runs each case twice. *Plainly*: sets, bodies and configurations are read in this
process, everything else is sent to a service with keys in this process, and the refusal must be the
expected one. *Under attack* (in
the long form): a `howsure serve` has two tenants with keys, the
attacker, whose key the case has, and a neighbour whose /predict another thread keeps calling. Then

- the response is the expected one with the id of the request, never a 5xx (504 `deadline-exceeded`
  of /predict apart), and tells nothing but what is wrong with the request: no path, no traceback,
  no library's words, and not all that was sent;
- the service computed for less than a second while each good predict waited, and for no longer
  than the case may take in all, and each said what it said before;
- the neighbour's list and prediction are the same, byte for byte, and so is the report at the end;
- the process is the one it was, has grown by no more than the case may take, and logged no
  unexpected error and no key;
- nothing is left on disk, once what the attacker was given to keep is deleted.

In both forms the neighbour sees the same at the end, and no file is left. A case whose response is
2xx of something to keep (a calibration that fails is one) is cleared away by the harness. Run one
with ``pytest tests/hostile -k NAME``.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from hostile_case import MEBIBYTE, HostileCase
from hostile_service import (
    GOOD_SECONDS,
    HostileService,
    TwoTenants,
    hostile_service,
    two_tenants,
    watched,
)

from service.errors import InvalidInput

CREATED = httpx.codes.CREATED
PLAINLY, ATTACK = "plainly", "under attack"
# Of a refusal: what a caller sent is told in part, however long it was.
MOST_CHARACTERS = 4000
TOLD_CHARACTERS = 600
# Words of libraries and of this machine, as they stand in their messages.
TELLTALE = re.compile(
    r"Traceback|File \"|\.(py|cc|cpp|so)\b|/(tmp|work|home|root|usr|proc|etc|var|site-packages)/|"
    r"spool|upload-[0-9a-f]{8}|part-\d|0x[0-9a-f]{6}|onnxruntime|ONNXRuntimeError|INVALID_|"
    r"numpy\.(core|_|lib)|allow_pickle|pyarrow|Arrow\w+|libparquet|thrift|"
    r"Parquet magic|zipfile|BadZip|PIL\b|"
    r"Pillow|msgspec|pydantic|orjson|sqlalchemy|sqlite|SELECT |Error:|Exception|errno|<class",
    re.IGNORECASE,
)


@pytest.fixture(scope="session")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoTenants]:
    """The service of the plain form."""
    with two_tenants(tmp_path_factory.mktemp("tenants"), load_timeout_seconds=3.0) as running:
        yield running


@pytest.fixture(scope="session")
def hostile_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileService]:
    """One process for all attacks of this test process."""
    with hostile_service(tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture(params=[PLAINLY, pytest.param(ATTACK, marks=pytest.mark.slow)])
def hostile(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[HostileCase], httpx.Response | None]:
    """Send a case, and check all that must hold of the response and of everybody else."""

    def run(case: HostileCase) -> httpx.Response | None:
        if request.param == ATTACK:
            return attack(request.getfixturevalue("hostile_process"), case)
        if case.read is not None:
            return assert_read_or_refused(case, tmp_path / "set")
        return send(request.getfixturevalue("tenants"), case)

    return run


def assert_read_or_refused(case: HostileCase, path: Path) -> None:
    """Read what was built in this process, within the limits of the hostile service."""
    if case.status == httpx.codes.OK:
        case.read(case.build(), path)
        return
    with pytest.raises(InvalidInput) as refused:
        case.read(case.build(), path)
    (violation,) = refused.value.violations
    code = refused.value.code()
    assert case.code in ("", code), violation
    assert (code == "too-large") == (case.status == httpx.codes.REQUEST_ENTITY_TOO_LARGE)
    assert case.says in f"{violation.location}: {violation.message}"
    assert TELLTALE.search(violation.message) is None
    assert len(violation.message) < TOLD_CHARACTERS


def send(service: TwoTenants, case: HostileCase) -> httpx.Response:
    """Send a case and look at the response alone."""
    built = () if case.build is None else (case.build(),)
    response = case.send(service.attacker, *built)
    if response.is_success:
        service.clear()
    assert_answered(response, case)
    return response


def attack(service: HostileService, case: HostileCase) -> httpx.Response:
    """Send a case beside a neighbour, and look at everything."""
    built = () if case.build is None else (case.build(),)
    assert service.is_alive(), "an earlier case ended the service"
    before, logged = service.reset_peak(), len(service.log())
    began = service.all_processor_seconds()
    with watched(service) as (waited, wrong):
        response = case.send(service.attacker, *built)
    peak, computed = service.peak(), service.all_processor_seconds() - began
    service.clear()
    assert_answered(response, case)
    assert service.is_alive(), "the service ended"
    assert wrong == []
    assert max(waited) < GOOD_SECONDS, f"the neighbour waited for {waited}"
    assert service.seen(report=False).items() <= service.expected.items()
    assert computed <= case.seconds, f"it computed for {computed:.2f} s"
    assert peak - before <= case.memory, f"it took {(peak - before) // MEBIBYTE} MiB"
    assert_quiet(service.log()[logged:], service)
    assert service.leftovers() == []
    return response


def assert_answered(response: httpx.Response, case: HostileCase) -> None:
    """The expected status and problem, and not a word more than what is wrong."""
    start = response.text[:TOLD_CHARACTERS]
    assert response.status_code == case.status, start
    request_id = response.headers["x-request-id"]
    if case.status == CREATED:
        calibration = response.json()
        assert calibration["status"] == ("failed" if case.code else "succeeded"), start
        problem = calibration["error"]
    elif response.is_success:
        assert not case.code
        return
    elif case.code == "" and response.headers["content-type"] == "application/json":
        problem = {"detail": response.json()["error"]}  # the Open Inference Protocol's
    else:
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert problem["request_id"] == request_id
    if case.rule is not None:
        broken = [entry.get("rule", "") for entry in (problem or {}).get("errors", [])]
        assert (broken or [""]) == [case.rule], problem
    if problem is None:
        return
    if case.code:
        assert problem["type"] == f"urn:howsure:problem:{case.code}", start
    assert case.says in str(problem), start
    assert len(str(problem)) <= MOST_CHARACTERS, f"it says {len(str(problem))} characters"
    telltale = TELLTALE.search(str(problem))
    assert telltale is None, (telltale, problem)


def assert_quiet(lines: str, service: HostileService) -> None:
    """Nothing that nobody thought of happened, and no key was written down."""
    assert "unexpected_error" not in lines
    assert "Traceback" not in lines, lines[-4000:]
    assert service.attacker.key.rsplit("_", 2)[-2] not in lines
