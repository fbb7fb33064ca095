"""What every hostile case has to leave as it was, in one place.

To add a case, write a `HostileCase` into the table of the file it belongs to, under `data`, `json`,
`models` or `http`::

    CASES = [
        HostileCase(
            "csv_of_nul_bytes",
            lambda attacker: attacker.calibrate(bytes(1000)),
            status=415,
            code="unsupported-format",
            says="calibration",
        ),
    ]


    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_it_is_refused(hostile, case: HostileCase) -> None:
        hostile(case)

``hostile`` sends it to a `howsure serve` that all cases of a test process share, which has two
tenants with keys: the attacker, whose key the case has, and a neighbour. Meanwhile another thread
keeps asking the neighbour's /predict. Then it checks that

- the answer is the expected one with the id of the request, never a 5xx (504 `deadline-exceeded` of
  /predict apart), and tells nothing but what is wrong with the request: no path, no traceback, no
  library's words, and not all that was sent;
- the service computed for less than a second while each good predict waited, and for no longer
  than the case may take in all, and each said what it said before;
- the neighbour's list and prediction are the same, byte for byte, and so is the report, which is
  looked at after every tenth case and at the end;
- the process is the one it was, has grown by no more than the case may take, and logged no
  unexpected error and no key;
- nothing is left on disk, once what the attacker was given to keep is deleted.

A case whose answer is 2xx of something to keep (a calibration that fails is one) is cleared away by
the harness; nothing else is to be undone. Run one with ``pytest tests/hostile -k NAME``.
"""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from hostile_case import MEBIBYTE, HostileCase
from hostile_service import GOOD_SECONDS, HostileService, Watch, hostile_service

CREATED = httpx.codes.CREATED
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
def hostile_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileService]:
    """One service for all cases of this test process."""
    with hostile_service(tmp_path_factory.mktemp("hostile")) as service:
        yield service
        assert service.neighbour.view() == service.expected


@pytest.fixture
def hostile(hostile_process: HostileService) -> Callable[[HostileCase], httpx.Response]:
    """Send a case, and check all that must hold of the answer and of everybody else."""

    def run(case: HostileCase) -> httpx.Response:
        service = hostile_process
        built = () if case.build is None else (case.build(),)
        assert service.is_alive(), "an earlier case ended the service"
        before, logged = service.reset_peak(), len(service.log())
        began = service.all_processor_seconds()
        with Watch(service.neighbour, service.expected, service.processor_seconds) as watch:
            answer = case.send(service.attacker, *built)
        peak, computed = service.peak(), service.all_processor_seconds() - began
        service.clear()
        assert_answered(answer, case)
        assert_undisturbed(service, watch)
        assert computed <= case.seconds, f"it computed for {computed:.2f} s"
        assert peak - before <= case.memory, f"it took {(peak - before) // MEBIBYTE} MiB"
        assert_quiet(service.log()[logged:], service)
        assert service.leftovers() == []
        return answer

    return run


def assert_answered(answer: httpx.Response, case: HostileCase) -> None:
    """The expected status and problem, and not a word more than what is wrong."""
    told = answer.text[:TOLD_CHARACTERS]
    assert answer.status_code == case.status, told
    request_id = answer.headers["x-request-id"]
    if case.status == CREATED:
        found = answer.json()
        assert found["status"] == ("failed" if case.code else "succeeded"), told
        problem = found["error"]
    elif answer.is_success:
        assert not case.code
        return
    elif case.code == "" and answer.headers["content-type"] == "application/json":
        problem = {"detail": answer.json()["error"]}  # the Open Inference Protocol's
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["request_id"] == request_id
    if problem is None:
        return
    if case.code:
        assert problem["type"] == f"urn:howsure:problem:{case.code}", told
    assert case.says in str(problem), told
    assert len(str(problem)) <= MOST_CHARACTERS, f"it says {len(str(problem))} characters"
    found = TELLTALE.search(str(problem))
    assert found is None, (found, problem)


def assert_undisturbed(service: HostileService, watch: Watch) -> None:
    """The neighbour was answered as ever, by the process that was there before."""
    assert service.is_alive(), "the service ended"
    assert watch.wrong == []
    waited = [round(s, 2) for s in watch.seconds]
    assert max(waited) < GOOD_SECONDS, f"the neighbour waited for {waited}"
    assert service.seen() == service.expected


def assert_quiet(lines: str, service: HostileService) -> None:
    """Nothing that nobody thought of happened, and no key was written down."""
    assert "unexpected_error" not in lines
    assert "Traceback" not in lines, lines[-4000:]
    assert service.attacker.key.rsplit("_", 2)[-2] not in lines
