"""Uploads that are cancelled, cut off or without space leave nothing on disk."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

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
def test_a_cancelled_upload_leaves_nothing(tmp_path: Path, n_chunks: int) -> None:
    def spooled() -> list[Path]:
        return list(tmp_path.iterdir())

    async def cancelled() -> None:
        stalls = asyncio.Event()

        async def stalled() -> AsyncIterator[bytes]:
            yield file_part("model", "a", b"")[:-2]
            for _ in range(n_chunks):
                yield b"x" * 65_536
            stalls.set()
            await asyncio.Event().wait()

        receiving = asyncio.create_task(
            spool_multipart(CONTENT_TYPE, stalled(), folder=tmp_path, limits=LIMITS, parts=LARGE)
        )
        await stalls.wait()
        assert len(spooled()) == 1
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving

    asyncio.run(cancelled())
    assert spooled() == []


def test_an_upload_past_a_deadline_leaves_nothing(tmp_path: Path) -> None:
    """A cancelled scope of anyio, unlike a cancelled task, cancels what cleans up as well."""

    async def stalled() -> AsyncIterator[bytes]:
        yield file_part("model", "a", b"x" * (2 * MEBIBYTE))
        await anyio.sleep_forever()

    async def late() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await spool_multipart(
                CONTENT_TYPE, stalled(), folder=tmp_path, limits=LIMITS, parts=LARGE
            )
        return scope.cancelled_caught

    assert asyncio.run(late())
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
    async def turns_of_another_task() -> int:
        turns = 0

        async def turning() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(turning())
        chunks = [body(file_part("model", "a", b"x" * (8 * MEBIBYTE)))]
        await spool_multipart(
            CONTENT_TYPE, streamed(chunks), folder=tmp_path, limits=LIMITS, parts=LARGE
        )
        other.cancel()
        return turns

    # The body is one chunk, so the stream gives way once: all other turns fell into the writing.
    assert asyncio.run(turns_of_another_task()) > 10
