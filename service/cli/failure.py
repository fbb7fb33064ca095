"""Failures that end a command with one sentence."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from howsure.client import HowsureError, ServiceUnreachable
from howsure.client.transport import address_asked
from service.errors import ServiceError

# What the client calls the service that a command runs itself, behind a Unix socket.
EMBEDDED_URL = "http://howsure"
# The service of the command, if it runs elsewhere: what it responds is none of this program's.
remote: ContextVar[str] = ContextVar("remote", default="")
# Failures of code that reads a response of another form.
_OTHER_FORM = (LookupError, TypeError, AttributeError, ValueError, RecursionError)


class CommandFailed(Exception):
    """A command failed; the message says why and what to do."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn the failures of the service, its database and its files into `CommandFailed`."""
    try:
        yield
    except CommandFailed:
        raise
    except Exception as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        raise CommandFailed(sentence) from error


def sentence_of(error: Exception) -> str | None:
    """Return what to print for a failure; None for one that is a fault of the program."""
    if isinstance(error, (CommandFailed, ServiceError)):
        return str(error)
    if isinstance(error, (HowsureError, httpx.TransportError)):
        return _answer(error)
    if isinstance(error, httpx.InvalidURL):
        return f"--url: {error}"
    if isinstance(error, OSError):
        return f"{error.filename or 'file'}: {error.strerror or error}"
    from sqlalchemy.exc import SQLAlchemyError

    if isinstance(error, SQLAlchemyError):
        return f"the database: {reason_of(error)}; see HOWSURE_DATABASE_URL"
    return _unreadable(error) if remote.get() and isinstance(error, _OTHER_FORM) else None


def _unreadable(error: Exception) -> str:
    said = f"{type(error).__name__}: {error}"
    return f"{remote.get()} does not respond as this version of Howsure does ({said:.300})"


def _answer(error: HowsureError | httpx.TransportError) -> str:
    """Return the refusal of the service, or say that it did not answer."""
    cause = error.__cause__ if isinstance(error, ServiceUnreachable) else error
    if isinstance(cause, httpx.TransportError):
        return f"no answer from the service{_at(cause)}: {str(cause) or type(cause).__name__}"
    found = error.errors if isinstance(error, HowsureError) else []
    lines = [f"  {entry['location']}: {entry['message']}" for entry in found]
    if isinstance(error, HowsureError) and len(lines) > 1:
        return "\n".join([f"{error.title}:", *lines])
    return str(error)


def _at(error: httpx.TransportError) -> str:
    """Return the address that did not answer; empty for the service of this process."""
    address = address_asked(error)
    return "" if address is None or address == EMBEDDED_URL else f" at {address}"


def read_json(text: str | bytes, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a JSON text; ``name`` says where the text comes from.

    Raises
    ------
    CommandFailed
        If it is no JSON.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise CommandFailed(f"{name}: the lists are nested too deeply") from error
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{name} is not JSON: it is not text in UTF-8") from error
    except ValueError as error:
        raise CommandFailed(f"{name} is not JSON: {error}") from error


def reason_of(error: Exception) -> str:
    """Return the first line of the database driver's message."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
