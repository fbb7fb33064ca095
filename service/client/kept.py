"""What is asked of calibrations that are there: to be told, listed, promoted, deleted, exported."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from service.client.calibration import Calibration, reference_of
from service.client.request import Request, address_of
from service.client.retrying import asked
from service.client.steps import Steps

Status: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TextFormat: TypeAlias = Literal["csv", "markdown", "model-card", "html"]
PAGE = 200


def read(calibration: Calibration | str, *, retries: int) -> Steps[Calibration]:
    """Read one calibration as it is now."""
    path = address_of(reference_of(calibration))
    answer = yield from asked(Request("GET", path), retries=retries)
    return Calibration.of(answer.json())


def listed(
    *, name: str | None, status: Status | None, limit: int | None, retries: int
) -> Steps[list[Calibration]]:
    """Read all pages, the newest first, until there are ``limit``."""
    found: list[Calibration] = []
    cursor = None
    while limit is None or len(found) < limit:
        size = PAGE if limit is None else min(PAGE, limit - len(found))
        params = {"name": name, "status": status, "cursor": cursor, "limit": size}
        answer = yield from asked(Request("GET", "/calibrations", params), retries=retries)
        page = answer.json()
        found += [Calibration.of(resource) for resource in page["calibrations"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    return found


def changed(
    calibration: Calibration | str, verb: Literal["promote", "cancel"], *, retries: int
) -> Steps[Calibration]:
    """Promote or cancel it, and return it as it is then."""
    path = f"{address_of(reference_of(calibration))}/{verb}"
    request = Request("POST", path, repeatable=verb == "promote")
    answer = yield from asked(request, retries=retries)
    return Calibration.of(answer.json())


def deleted(calibration: Calibration | str, *, retries: int) -> Steps[None]:
    """Delete it."""
    path = address_of(reference_of(calibration))
    yield from asked(Request("DELETE", path, repeatable=False), retries=retries)


def as_json(
    path: str, params: Mapping[str, Any] | None = None, *, retries: int
) -> Steps[dict[str, Any]]:
    """Read what lies at a path as JSON."""
    answer = yield from asked(Request("GET", path, params or {}), retries=retries)
    found: dict[str, Any] = answer.json()
    return found


def as_text(path: str, params: Mapping[str, Any], *, retries: int) -> Steps[str]:
    """Read what lies at a path as text."""
    answer = yield from asked(Request("GET", path, params), retries=retries)
    return answer.content.decode()


def exported(
    calibration: Calibration | str, to: str | os.PathLike[str], *, retries: int
) -> Steps[Path]:
    """Write the calibrated file, which appears under its name once it is whole."""
    path = Path(to)
    unfinished = path.with_name(f"{path.name}.part")
    request = Request("GET", address_of(reference_of(calibration), "model.onnx"), patient=True)
    try:
        with unfinished.open("wb") as file:
            yield from asked(request, retries=retries, into=file)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path
