"""Failures that end a command with one sentence."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from howsure.client import HowsureError, ServiceUnreachable
from service.errors import ServiceError

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError


class CommandFailed(Exception):
    """A command failed; the message says why and what to do."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn the failures of the service, its database and its files into `CommandFailed`."""
    try:
        yield
    except ServiceError as error:
        raise CommandFailed(error.message) from error
    except (ServiceUnreachable, httpx.TransportError) as error:
        raise CommandFailed(f"no answer from the service: {error.__cause__ or error}") from error
    except HowsureError as error:
        lines = [f"  {entry['location']}: {entry['message']}" for entry in error.errors]
        more = lines if len(lines) > 1 else []
        raise CommandFailed("\n".join([str(error), *more])) from error
    except httpx.InvalidURL as error:
        raise CommandFailed(f"--url: {error}") from error
    except OSError as error:
        raise CommandFailed(f"{error.filename or 'file'}: {error.strerror or error}") from error
    except CommandFailed:
        raise
    except Exception as error:
        from sqlalchemy.exc import SQLAlchemyError

        if not isinstance(error, SQLAlchemyError):
            raise
        raise CommandFailed(
            f"the database: {reason_of(error)}; see HOWSURE_DATABASE_URL"
        ) from error


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
    except ValueError as error:
        raise CommandFailed(f"{name} is not JSON: {error}") from error


def reason_of(error: "SQLAlchemyError") -> str:
    """Return the first line of the database driver's message."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
