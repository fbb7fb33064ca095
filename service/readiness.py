"""Whether the process can do its work."""

import asyncio
import time
import uuid

from obstore.exceptions import BaseError
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from service.errors import ServiceError
from service.runner.messages.sandbox_rules import find_sandbox
from service.storage.schema import is_current
from service.workspace import Workspace

FRESH_SECONDS = 1.0


class ReadinessChecks:
    """Checks everything that the service needs, at most once a second, however many ask.

    A stopping process is never ready, so that new requests go to another one.
    """

    def __init__(self, workspace: Workspace, stopping: asyncio.Event) -> None:
        self._workspace = workspace
        self._stopping = stopping
        self._begun = -FRESH_SECONDS
        self._checks: asyncio.Future[tuple[bool, dict[str, str]]] | None = None

    async def results(self) -> tuple[bool, dict[str, str]]:
        """Return the verdict, and the result of each check."""
        if self._stopping.is_set():
            return False, {"process": "stopping; use another one"}
        now, checks = time.monotonic(), self._checks
        if checks is None or (checks.done() and now - self._begun >= FRESH_SECONDS):
            self._begun = now
            checks = asyncio.ensure_future(run_in_threadpool(_check, self._workspace))
            self._checks = checks
        return await asyncio.shield(checks)


def _check(workspace: Workspace) -> tuple[bool, dict[str, str]]:
    checks: dict[str, str] = {}
    try:
        current = is_current(workspace.database)
        checks["database"] = "ok"
        checks["schema"] = "ok" if current else "out of date: run `howsure db upgrade`"
    except SQLAlchemyError as error:
        checks["database"] = f"does not respond ({type(error).__name__})"
        checks["schema"] = "unknown"
    checks["artifacts"] = _artifacts(workspace)
    ready = all(result == "ok" for result in checks.values())
    is_fine, checks["sandbox"] = _sandbox(workspace)
    ready = ready and is_fine
    try:
        checks["device"] = ", ".join(device.name for device in workspace.runners.devices())
    except ServiceError as error:
        checks["device"] = error.message
        ready = False
    return ready, checks


def _sandbox(workspace: Workspace) -> tuple[bool, str]:
    """Return whether ONNX models can run, and the level of their sandbox."""
    sandbox = find_sandbox()
    if not sandbox.missing:
        return True, sandbox.level
    lacking = f"{sandbox.level}: the kernel lacks {' and '.join(sandbox.missing)}"
    if workspace.runners.sandbox.allow_unsandboxed:
        return True, lacking
    return False, f"{lacking}; ONNX models are refused, but for HOWSURE_ALLOW_UNSANDBOXED=true"


def _artifacts(workspace: Workspace) -> str:
    """Store, read and delete a few bytes; nothing less detects a full or read-only disk."""
    key = f"calibrations/{uuid.uuid4()}/readiness"
    try:
        stored = workspace.artifacts.put_bytes(key, b"ready")
        workspace.artifacts.get_bytes(key, stored.sha256)
        workspace.artifacts.delete([key])
    except ServiceError as error:
        return error.message.replace(key, "")
    except (BaseError, OSError) as error:
        return f"cannot be written ({type(error).__name__})"
    return "ok"
