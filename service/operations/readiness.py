"""Whether this process can do its work."""

import uuid

from obstore.exceptions import BaseError
from sqlalchemy.exc import SQLAlchemyError

from service.errors import ServiceError
from service.operations.workspace import Workspace
from service.runner.sandbox import find_sandbox
from service.storage.schema import is_current


def readiness(workspace: Workspace, *, is_stopping: bool) -> tuple[bool, dict[str, str]]:
    """Check all that the service needs; return the verdict and each finding.

    A process that is stopping answers what it gets, and asks to be sent no more.
    """
    if is_stopping:
        return False, {"process": "stopping; another one is to be asked"}
    checks: dict[str, str] = {}
    try:
        current = is_current(workspace.database)
        checks["database"] = "ok"
        checks["schema"] = "ok" if current else "out of date: run `howsure db upgrade`"
    except SQLAlchemyError as error:
        checks["database"] = f"does not answer ({type(error).__name__})"
        checks["schema"] = "unknown"
    checks["artifacts"] = _artifacts(workspace)
    ready = all(found == "ok" for found in checks.values())
    is_fine, checks["sandbox"] = _sandbox(workspace)
    ready = ready and is_fine
    try:
        checks["device"] = ", ".join(device.name for device in workspace.runners.devices())
    except ServiceError as error:
        checks["device"] = error.message
        ready = False
    return ready, checks


def _sandbox(workspace: Workspace) -> tuple[bool, str]:
    """Say whether ONNX models run, and how their processes are locked in."""
    sandbox = find_sandbox()
    if not sandbox.missing:
        return True, sandbox.level
    lacking = f"{sandbox.level}: the kernel lacks {' and '.join(sandbox.missing)}"
    if workspace.runners.allows_unsandboxed:
        return True, lacking
    return False, f"{lacking}; ONNX models are refused, but for HOWSURE_ALLOW_UNSANDBOXED=true"


def _artifacts(workspace: Workspace) -> str:
    """Store, read and delete a few bytes: a full or read-only disk shows in nothing less."""
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
