"""Whether this process can do its work."""

from sqlalchemy.exc import SQLAlchemyError

from service.errors import ServiceError
from service.operations.workspace import Workspace
from service.storage.schema import is_current


def readiness(workspace: Workspace) -> tuple[bool, dict[str, str]]:
    """Check the database, its schema and the device; return the verdict and each finding."""
    checks: dict[str, str] = {}
    try:
        current = is_current(workspace.database)
        checks["database"] = "ok"
        checks["schema"] = "ok" if current else "out of date: run `howsure db upgrade`"
    except SQLAlchemyError as error:
        checks["database"] = f"does not answer ({type(error).__name__})"
        checks["schema"] = "unknown"
    ready = checks["database"] == "ok" and checks["schema"] == "ok"
    try:
        checks["device"] = workspace.runners.device().name
    except ServiceError as error:
        checks["device"] = error.message
        ready = False
    return ready, checks
