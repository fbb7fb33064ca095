"""Which routes change something, and what the audit table calls it."""

from collections.abc import Mapping
from dataclasses import dataclass

from models import AuditVia
from service.api.access.page_cookie import PAGES
from service.api.access.route_scopes import declared_route
from service.operations.audit import evaluation_subject

_OF_CALIBRATION = "/calibrations/{calibration_id}"
_OF_EVALUATION = f"{_OF_CALIBRATION}/evaluations/{{evaluation_name:path}}"

ACTIONS: Mapping[tuple[str, str], str] = {
    ("POST", "/calibrate"): "calibrate",
    ("POST", "/calibrations/import"): "import",
    ("POST", f"{_OF_CALIBRATION}/refit"): "refit",
    ("POST", f"{_OF_CALIBRATION}/promote"): "promote",
    ("POST", f"{_OF_CALIBRATION}/cancel"): "cancel",
    ("DELETE", _OF_CALIBRATION): "delete",
    ("POST", f"{_OF_CALIBRATION}/operating-points"): "put-in-force",
    ("POST", f"{_OF_CALIBRATION}/operating-points/withdraw"): "withdraw",
    ("POST", f"{_OF_CALIBRATION}/evaluations"): "evaluate",
    ("POST", f"{_OF_EVALUATION}/cancel"): "cancel-evaluation",
    ("DELETE", _OF_EVALUATION): "delete-evaluation",
    ("POST", "/pages/calibrate"): "calibrate",
    ("POST", f"/pages{_OF_CALIBRATION}/cancel"): "cancel",
    ("POST", f"/pages{_OF_EVALUATION}/cancel"): "cancel-evaluation",
    ("POST", f"/pages{_OF_CALIBRATION}/operating-points"): "put-in-force",
    ("POST", f"/pages{_OF_CALIBRATION}/operating-points/withdraw"): "withdraw",
}
READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class AskedAction:
    """An action that a request asks for, through what, and what its path names."""

    name: str
    via: AuditVia
    subject: str | None


def asked_action(method: str, path: str) -> AskedAction | None:
    """Return what a request wants to change, None if it wants nothing that is written down."""
    if method in READS:
        return None
    found = declared_route(method, path)
    action = None if found is None else ACTIONS.get((method, found.path))
    if found is None or action is None:
        return None
    via: AuditVia = "page" if path.startswith(PAGES) else "api"
    calibration = found.named.get("calibration_id")
    evaluation = found.named.get("evaluation_name")
    if calibration is not None and evaluation is not None:
        return AskedAction(action, via, evaluation_subject(calibration, evaluation))
    return AskedAction(action, via, calibration)
