"""A minimal HTTP server for a model in Python: no calibration, no isolation, no limits.

An ASGI application on uvicorn with uvloop and httptools. All requests of one turn of the event loop
form one batch. It runs on the loop itself or, with ``--worker``, in one thread, while the next
batch gathers.

    python -m serve.bare_server [--worker] [--threads 1] MODEL.onnx ...
"""

import argparse
import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvicorn

from serve.networks import session

MAX_ROWS = 256
Outcome = tuple[np.ndarray, np.ndarray]
Job = tuple[np.ndarray, "asyncio.Future[Outcome]"]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HEADERS = [(b"content-type", b"application/json")]


class Reply(msgspec.Struct):
    """The first class of each row, and its softmax."""

    class_: list[int] = msgspec.field(name="class")
    score: list[float]


class Model:
    """One ONNX model with its waiting requests."""

    def __init__(self, path: Path, *, threads: int, executor: ThreadPoolExecutor | None) -> None:
        self._session = session(path.read_bytes(), threads)
        self.shape = tuple(self._session.get_inputs()[0].shape[1:])
        rows: Any = float
        for _ in ("row", *self.shape):
            rows = list[rows]
        asked: Any = msgspec.defstruct("Asked", [("inputs", rows)])
        self.decoder = msgspec.json.Decoder(asked)
        self._executor = executor
        self._waiting: list[Job] = []
        self._busy = False

    def ask(self, rows: np.ndarray) -> "asyncio.Future[Outcome]":
        """Queue rows for the next batch."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((rows, future))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._begin)
        return future

    def _begin(self) -> None:
        if self._executor is None:
            while self._waiting:
                jobs, rows = self._take()
                self._hand_out(jobs, self._run(rows))
            self._busy = False
        elif self._waiting:
            jobs, rows = self._take()
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._executor, self._run, rows)
            running.add_done_callback(lambda done: self._ended(jobs, done))
        else:
            self._busy = False

    def _ended(self, jobs: list[Job], done: "asyncio.Future[Outcome]") -> None:
        self._hand_out(jobs, done.result())
        self._begin()

    def _take(self) -> tuple[list[Job], np.ndarray]:
        taken = n_rows = 0
        for rows, _ in self._waiting:
            if taken and n_rows + len(rows) > MAX_ROWS:
                break
            taken, n_rows = taken + 1, n_rows + len(rows)
        jobs, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return jobs, jobs[0][0] if taken == 1 else np.concatenate([rows for rows, _ in jobs])

    def _run(self, rows: np.ndarray) -> Outcome:
        logits = self._session.run(None, {"input": rows})[0]
        top = logits.argmax(axis=1)
        rest = np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)
        return top, 1 / rest

    @staticmethod
    def _hand_out(jobs: list[Job], outcome: Outcome) -> None:
        at = 0
        for rows, future in jobs:
            if not future.done():
                future.set_result(
                    (outcome[0][at : at + len(rows)], outcome[1][at : at + len(rows)])
                )
            at += len(rows)


def application(models: dict[str, Model]) -> Callable[..., Awaitable[None]]:
    """Return the ASGI application: POST /MODEL/json and /MODEL/raw."""
    encoder = msgspec.json.Encoder()

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        chunks, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunks.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        _, name, format_ = scope["path"].split("/")
        model = models[name]
        if format_ == "json":
            rows = np.array(model.decoder.decode(body).inputs, dtype=np.float32)
        else:
            rows = np.frombuffer(body, dtype="<f4").reshape(-1, *model.shape)
        top, score = await model.ask(rows)
        content = encoder.encode(Reply(top.tolist(), score.tolist()))
        headers = [*HEADERS, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("models", nargs="+", type=Path)
    given = parser.parse_args()
    executor = ThreadPoolExecutor(1) if given.worker else None
    models = {
        path.stem: Model(path, threads=given.threads, executor=executor) for path in given.models
    }
    config = uvicorn.Config(
        application(models),
        http="httptools",
        loop="uvloop",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listener.getsockname()
        print(f"http://{host}:{port}", flush=True)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
