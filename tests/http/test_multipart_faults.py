"""Uploads that are cancelled, cut off or without space leave nothing on disk."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from own_process import file_size_limit
from request_formats import (
    CONTENT_TYPE,
    LIMITS,
    MEBIBYTE,
    body,
    file_part,
    pieces,
    receive,
    streamed,
)

from service.errors import StorageFull
from service.http.uploads import PartRule, spool_multipart

LARGE = {"model": PartRule(max_bytes=10**9, repeatable=True, is_file=True)}


def spool(chunks: AsyncIterator[bytes], folder: Path) -> Coroutine[Any, Any, object]:
    return spool_multipart(CONTENT_TYPE, chunks, folder=folder, limits=LIMITS, parts=LARGE)


def test_a_disconnected_client_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield file_part("model", "a", b"x" * 900_000)
        yield file_part("model", "a", b"x" * 900_000)
        assert list(tmp_path.rglob("part-*"))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        receive(tmp_path, broken())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_chunks", [0, 60], ids=["before a write", "after some"])
@pytest.mark.parametrize("by_scope", [False, True], ids=["task", "scope"])
def test_cancelled_uploads_leave_nothing(tmp_path: Path, n_chunks: int, *, by_scope: bool) -> None:
    """A cancelled scope of anyio, unlike a cancelled task, cancels what cleans up as well."""

    def has_one_file() -> bool:
        return len(list(tmp_path.iterdir())) == 1

    async def cancelled() -> None:
        stalls, scope = asyncio.Event(), anyio.CancelScope()

        async def stalled() -> AsyncIterator[bytes]:
            yield file_part("model", "a", b"")[:-2]
            for _ in range(n_chunks):
                yield b"x" * 65_536
            stalls.set()
            await anyio.sleep_forever()

        async def receive() -> None:
            with scope:
                await spool(stalled(), tmp_path)

        receiving = asyncio.create_task(receive())
        await stalls.wait()
        assert has_one_file()
        (scope if by_scope else receiving).cancel()
        await asyncio.wait((receiving,))

    asyncio.run(cancelled())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    data = body(file_part("model", "a", b"x" * 900_000))
    with file_size_limit(500_000), pytest.raises(StorageFull):
        receive(tmp_path, pieces(data, [65_536]))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "spool").write_text("no folder")
    with pytest.raises(OSError, match="spool"):  # other errors are not the client's fault
        receive(tmp_path / "spool", [data])


def test_other_tasks_run_while_a_body_is_written(tmp_path: Path) -> None:
    turns = itertools.count()

    async def turns_of_another_task() -> int:
        async def turning() -> None:
            for _ in turns:
                await asyncio.sleep(0)

        other = asyncio.create_task(turning())
        chunks = [body(file_part("model", "a", b"x" * (8 * MEBIBYTE)))]
        await spool(streamed(chunks), tmp_path)
        other.cancel()
        return next(turns)

    # The body is one chunk, so the stream gives way once: all other turns fell into the writing.
    assert asyncio.run(turns_of_another_task()) > 10
