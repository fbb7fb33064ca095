"""What goes wrong comes as an exception that says so; nothing is made twice, nothing is lost."""

import json
import socket
import threading
from urllib.parse import unquote

import httpx
import numpy as np
import pytest
from job_workspaces import inputs_set
from runner_models import undefined_below_zero, weights
from running_service import DIGITS, QUICK
from scripted_server import KINDS, client_of, scripted
from severed_address import SeveredAddress

from howsure.client import (
    AsyncClient,
    CalibrationFailed,
    Client,
    HowsureError,
    ServiceUnreachable,
    transport,
)
from howsure.client.request import address_of

JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}
LATER = (503, {"Retry-After": "0"}, b"")
PAGE = (200, JSON, b'{"calibrations": [], "next_cursor": null}')
UNKNOWN = (503, {}, b'{"title": "T", "detail": "d", "type": "urn:howsure:problem:outcome-unknown"}')


# What takes long is tried with the other client in the long form.
one_kind = pytest.mark.parametrize("kind", ["sync", pytest.param("async", marks=pytest.mark.slow)])


def before(url: str) -> SeveredAddress:
    """Return an address before that of a service."""
    address = httpx.URL(url)
    return SeveredAddress(address.host, address.port)


def url_of(address: SeveredAddress) -> str:
    return f"http://127.0.0.1:{address.port}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_tells_all_that_the_problem_tells(kind, url) -> None:
    samples = {"inputs": np.zeros((30, 64), np.float32), "labels": np.full(30, 10)}
    with client_of(kind, url) as client, pytest.raises(HowsureError) as refused:
        client.calibrate(DIGITS / "model.onnx", samples)
    error = refused.value
    assert (error.status, error.type) == (422, "urn:howsure:problem:invalid-dataset")
    assert error.errors[0]["location"] == "calibration.labels[0]"
    assert error.title in str(error)
    assert error.detail in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_a_calibration_that_fails_raises_its_problem(kind, url) -> None:
    model = undefined_below_zero(weights())
    with client_of(kind, url) as client, pytest.raises(CalibrationFailed) as failed:
        client.calibrate(model, inputs_set(defined=False), name="undefined", **QUICK)
    assert failed.value.resource["status"] == "failed"
    assert failed.value.detail == failed.value.resource["error"]["detail"]


@one_kind
def test_a_lost_answer_is_asked_for_again_and_nothing_is_made_twice(kind, url, digits) -> None:
    name = f"lost-{kind}"
    with before(url) as address, client_of(kind, url_of(address)) as client:
        address.lose()
        parts = DIGITS / "model.onnx", DIGITS / "calibration.npz"
        made = client.calibrate(*parts, name=name, **QUICK)
        assert address.has_lost
        assert (made.version, made.status) == (1, "succeeded")
        address.lose()
        assert client.refit(made, bins=4).version == 2
        assert address.has_lost
        address.lose()
        assert len(client.predict(digits, np.zeros((3, 64), np.float32))) == 3
        assert address.has_lost
        assert len(client.calibrations(name=name)) == 2


def test_what_may_have_been_done_is_not_asked_again_without_a_key(client, url) -> None:
    labels = np.arange(30) % 3
    samples = {"logits": np.eye(3)[labels], "labels": labels}
    made = client.calibrate(calibration=samples, name="lost-evaluation", **QUICK)
    with before(url) as address, Client(url_of(address)) as other:
        address.lose(b"POST")
        with pytest.raises(ServiceUnreachable, match="once"):
            other.evaluate(made, samples, name="once")
        assert address.has_lost
        address_of_sets = f"{url}/calibrations/{made.id}/evaluations"
        evaluations = httpx.get(address_of_sets).json()["evaluations"]
    assert [entry["name"] for entry in evaluations] == ["once"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_starts_late_is_waited_for(kind) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

        def start() -> None:
            listening.listen()
            near, _ = listening.accept()
            with near:
                near.recv(2**16)
                status, _, body = PAGE
                head = f"HTTP/1.1 {status} OK\r\nContent-Length: {len(body)}\r\n\r\n"
                near.sendall(head.encode() + body)

        starting = threading.Timer(0.1, start)
        starting.start()
        with client_of(kind, f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            assert client.calibrations() == []
        starting.join()


@pytest.mark.parametrize("kind", KINDS)
def test_later_is_tried_again_as_often_as_allowed(kind) -> None:
    with scripted(LATER, (429, {"Retry-After": "0"}, b""), PAGE) as server:
        with client_of(kind, server.url) as client:
            assert client.calibrations() == []
        assert len(server.asked) == 3


def test_it_comes_back_when_it_is_told_to(monkeypatch) -> None:
    pauses = []
    monkeypatch.setattr(transport.time, "sleep", pauses.append)
    with scripted((503, {"Retry-After": "7"}, b""), PAGE) as server, Client(server.url) as client:
        client.calibrations()
    assert pauses == [7]


SIGNED = {"author": "A", "reason": "R"}
HALF = {"coverage": 0.5, **SIGNED}
# The only answer, how often it may be asked for again, what is called, and how many requests come.
REFUSALS = {
    "later, again and again": (LATER, 1, lambda one: one.calibrations(), 2),
    "much later": ((503, {"Retry-After": "3600"}, b""), 4, lambda one: one.calibrations(), 1),
    "not found": ((404, {}, b"no problem at all"), 4, lambda one: one.get("x"), 1),
    "unknown promotion": (UNKNOWN, 1, lambda one: one.promote("x"), 2),
    "unknown deletion": (UNKNOWN, 1, lambda one: one.delete("x"), 1),
    "unknown activation": (UNKNOWN, 1, lambda one: one.activate_operating_point("x", **HALF), 1),
    "unknown withdrawal": (UNKNOWN, 1, lambda one: one.withdraw_operating_point("x", **SIGNED), 1),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_tried_again_only_where_that_may_help(case) -> None:
    answer, retries, call, n_requests = REFUSALS[case]
    with scripted(answer) as server, Client(server.url, retries=retries) as client:
        with pytest.raises(HowsureError) as refused:
            call(client)
        assert (refused.value.status, len(server.asked)) == (answer[0], n_requests)


def test_a_key_goes_with_what_makes_a_calibration_and_stays_the_same() -> None:
    with scripted(LATER, (422, {}, b"")) as server, Client(server.url) as client:
        for _ in range(2):
            with pytest.raises(HowsureError):
                client.calibrate(calibration=b"x")
    first, again, another = [headers["idempotency-key"] for headers in server.headers]
    assert first == again != another


def resource(status: str, progress: dict | None = None) -> str:
    body = {"id": "1", "name": "n", "version": 1, "status": status, "progress": progress}
    body |= {"promoted": False, "accuracy": None, "serve": None, "warnings": [], "config": {}}
    return json.dumps(body)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_wait_cancels_the_calibration_if_asked_to(kind) -> None:
    def interrupt(progress) -> None:
        if progress.status == "running":
            raise KeyboardInterrupt

    queued, cancelled = ((200, JSON, resource(at).encode()) for at in ("queued", "cancelled"))
    told = f"event: progress\ndata: {resource('running')}\n\n".encode()
    begun = (queued, (200, EVENTS, told))
    with scripted(*begun, *begun, cancelled) as server, client_of(kind, server.url) as client:
        for options in ({}, {"cancel_on_interrupt": True}):
            with pytest.raises(KeyboardInterrupt):
                client.calibrate(calibration=b"x", on_progress=interrupt, **options)
        with pytest.raises(CalibrationFailed, match="Cancelled"):
            client.wait("n")
    calibrating = [("POST", "/calibrate"), ("GET", "/calibrations/1/events")]
    cancelling = [("POST", "/calibrations/1/cancel"), ("GET", "/calibrations/n")]
    assert server.asked == [*calibrating, *calibrating, *cancelling]


def test_a_wait_may_end_before_the_calibration() -> None:
    queued, running = resource("queued").encode(), resource("running").encode()
    answers = (202, JSON, queued), (503, {}, b""), (200, JSON, running)
    with scripted(*answers) as server, Client(server.url) as client:
        made = client.calibrate(calibration=b"x", wait=0.1)
    assert (made.status, made.is_finished) == ("running", False)


def test_without_events_it_asks_now_and_then() -> None:
    def told(status: str, done: int) -> tuple[int, dict[str, str], bytes]:
        body = resource(status, {"stage": "fit", "done": done, "total": 2})
        return 200, JSON, body.encode()

    answers = [told("queued", 0), (503, {}, b""), told("running", 1), told("succeeded", 2)]
    with scripted(*answers) as server, Client(server.url) as client:
        seen = []
        assert client.wait("n", on_progress=seen.append).status == "succeeded"
    assert [entry.done for entry in seen] == [0, 1, 2]
    paths = [path for _, path in server.asked]
    assert paths == ["/calibrations/n", "/calibrations/1/events", *["/calibrations/1"] * 2]


@pytest.mark.parametrize("ending", ["", "event: end\ndata: {no json\n\n"])
def test_a_stream_that_breaks_off_is_opened_again(ending) -> None:
    running, done = resource("running"), resource("succeeded")
    answers = [
        (200, JSON, running.encode()),
        (200, EVENTS, f": nothing new\n\nevent: progress\ndata: {running}\n\n{ending}".encode()),
        (200, JSON, running.encode()),
        (200, EVENTS, f"event: end\ndata: {done}\n\n".encode()),
    ]
    with scripted(*answers) as server, Client(server.url) as client:
        assert client.wait("n").status == "succeeded"
    assert len(server.asked) == 4


def test_a_calibration_that_is_deleted_meanwhile_is_not_waited_for() -> None:
    gone = b'event: end\ndata: {"id": "1", "status": "deleted"}\n\n'
    answers = (200, JSON, resource("running").encode()), (200, EVENTS, gone)
    with (
        scripted(*answers) as server,
        Client(server.url) as client,
        pytest.raises(HowsureError, match="deleted") as refused,
    ):
        client.wait("1")
    assert refused.value.status == 404


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_address_begins_with_http(kind) -> None:
    for url in ("localhost:8000", "ftp://localhost", "127.0.0.1"):
        with pytest.raises(ValueError, match=r"url: .* http://"):
            kind(url)


@pytest.mark.parametrize("name", ["digits#2", "a?b", "a/b", "50 %41", "a%2Fb", "é", "digits@3"])
def test_a_name_is_one_segment_of_an_address(name: str) -> None:
    url = httpx.URL("http://service" + address_of(name, "evaluations", name))

    segments = [unquote(segment) for segment in url.raw_path.decode("ascii").split("/")]
    assert segments == ["", "calibrations", name, "evaluations", name]
    assert (url.fragment, url.query) == ("", b"")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_no_path_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        address_of(name)
