"""Clients that leave before they are answered."""

import asyncio
from collections import Counter
from contextlib import closing

import numpy as np

from serve.checked import Question
from serve.connection import Connection

WAYS = ("close", "reset", "half")


async def leave(
    address: str, question: Question, way: str, seconds: float, left: Counter[str]
) -> bool:
    """Ask, wait so long and leave; say whether that was before the answer came.

    ``close`` and ``reset`` do so with a whole request under way, ``half`` in the midst of a body.
    """
    try:
        connection = await Connection.open(address)
    except OSError:
        return False
    half = len(question.wire) - len(question.payload.body) // 2
    answer = connection.ask(question.wire[:half] if way == "half" else question.wire)
    try:
        await asyncio.wait([answer], timeout=seconds)
    finally:
        in_flight = not answer.done()
        answer.cancel()
        if way == "reset":
            connection.reset()
        else:
            connection.close()
    left[way] += in_flight
    return in_flight


async def typical_seconds(address: str, asked: list[Question]) -> float:
    """Return the response time without other load."""
    seconds, loop = [], asyncio.get_running_loop()
    with closing(await Connection.open(address)) as connection:
        for question in asked:
            start = loop.time()
            await connection.ask(question.wire)
            seconds.append(loop.time() - start)
    return float(np.median(seconds))
