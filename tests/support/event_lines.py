"""Server-sent events as a client reads them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx


class Events:
    """An open stream: its events as they come, and its comments."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        """Return the name and the content of the next event."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "data" in fields:
                return fields["event"], json.loads(fields["data"])
        raise StopIteration


@contextmanager
def events_of(client: httpx.Client, address: str) -> Iterator[Events]:
    """Open the stream of a job, by its address."""
    with client.stream("GET", f"{address}/events", timeout=30) as response:
        if response.status_code != httpx.codes.OK:
            response.read()
        yield Events(response)
