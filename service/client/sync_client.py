"""The client for programs that wait for their answers."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from service.client.connection import RETRIES, TIMEOUT_SECONDS, headers_of, url_of
from service.client.request import Answer
from service.client.steps import (
    CloseLines,
    NextLine,
    OpenLines,
    Send,
    Sleep,
    Step,
    Steps,
    shown_signature,
)
from service.client.uses import Uses

P = ParamSpec("P")
T = TypeVar("T")


def _waits(use: Callable[Concatenate[Uses, P], Steps[T]]) -> Callable[Concatenate["Client", P], T]:
    """Make a method of the steps of a use."""

    @wraps(use)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._take(use(client._uses, *args, **kwargs))  # noqa: SLF001 - its own method

    setattr(method, "__signature__", shown_signature(use))  # noqa: B010 - no type knows of it
    return method


class Client:
    """A running service, as a Python program uses it; several threads may share one.

    Parameters
    ----------
    url
        Its address; without one ``HOWSURE_URL``, else ``http://127.0.0.1:8000``.
    api_key
        A key of the service; without one ``HOWSURE_API_KEY``, else none is sent.
    timeout
        Seconds within which it must go on with an answer; checking an upload may take longer.
    retries
        How often a request is sent again that found no connection or was told to come later.
    http
        A client of your own to send by, for proxies or certificates, which also sends
        the key; it stays open.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        http: httpx.Client | None = None,
    ) -> None:
        self._uses = Uses(retries=retries)
        self._timeout = timeout
        self._owned = None
        if http is None:
            self._owned = httpx.Client(base_url=url_of(url), headers=headers_of(api_key))
        self._http = self._owned or http or httpx.Client()

    calibrate = _waits(Uses.calibrate)
    dry_run = _waits(Uses.dry_run)
    wait = _waits(Uses.wait)
    predict = _waits(Uses.predict)
    get = _waits(Uses.get)
    calibrations = _waits(Uses.calibrations)
    report = _waits(Uses.report)
    report_text = _waits(Uses.report_text)
    bins = _waits(Uses.bins)
    export = _waits(Uses.export)
    evaluate = _waits(Uses.evaluate)
    refit = _waits(Uses.refit)
    promote = _waits(Uses.promote)
    cancel = _waits(Uses.cancel)
    delete = _waits(Uses.delete)

    def close(self) -> None:
        """Let go of the connections."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, steps: Steps[T]) -> T:
        """Take one step after the other; what a step raises is the steps' to handle."""
        with ExitStack() as streams:
            taker = _Taker(self._http, self._timeout, streams)
            came: object = None
            raised: BaseException | None = None
            while True:
                try:
                    step = steps.send(came) if raised is None else steps.throw(raised)
                except StopIteration as end:
                    result: T = end.value
                    return result
                came = raised = None
                try:
                    came = taker(step)
                except BaseException as error:  # noqa: BLE001 - handed to the steps
                    raised = error


class _Taker:
    """Takes steps; holds the answer whose lines are read."""

    def __init__(self, http: httpx.Client, timeout: float | None, streams: ExitStack) -> None:
        self._http = http
        self._timeout = timeout
        self._streams = streams
        self._lines: Any = iter(())

    def __call__(self, step: Step) -> object:
        match step:
            case Send():
                return self._send(step)
            case Sleep():
                time.sleep(step.seconds)
            case OpenLines():
                return self._open(step)
            case NextLine():
                return next(self._lines, None)
            case CloseLines():
                self._streams.close()
        return None

    def _send(self, step: Send) -> Answer:
        with self._http.stream(**step.request.as_arguments(self._timeout)) as response:
            if step.into is None or response.status_code != httpx.codes.OK:
                return Answer(response.status_code, response.headers, response.read())
            step.into.seek(0)
            step.into.truncate()
            for chunk in response.iter_bytes():
                step.into.write(chunk)
            return Answer(response.status_code, response.headers, b"")

    def _open(self, step: OpenLines) -> Answer:
        arguments = step.request.as_arguments(step.silence)
        response = self._streams.enter_context(self._http.stream(**arguments))
        self._lines = response.iter_lines()
        return Answer(response.status_code, response.headers, b"")
