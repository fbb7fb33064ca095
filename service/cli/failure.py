"""Failures that end a command with one sentence."""

from http import HTTPStatus

import httpx


class CommandFailed(Exception):
    """The command could not do its work; the message says why and what to do."""


def check(response: httpx.Response) -> httpx.Response:
    """Return the response, or raise its problem in words.

    Raises
    ------
    CommandFailed
        If the service refused.
    """
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return response
    response.read()
    try:
        problem = response.json()
        lines = [f"{problem['title']}: {problem['detail']}"]
        found = problem.get("errors", [])
        if len(found) > 1:
            lines += [f"  {entry['location']}: {entry['message']}" for entry in found]
    except (ValueError, KeyError, TypeError):
        lines = [f"the service answered {response.status_code} {response.reason_phrase}"]
    raise CommandFailed("\n".join(lines))
