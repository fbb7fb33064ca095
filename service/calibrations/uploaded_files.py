"""What a caller uploads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.access.audit_log import AuditEvent
from service.access.rate_limits import NO_LIMITS, TenantLimits
from service.storage.idempotency_keys import KeyedRequest


@dataclass(frozen=True)
class UploadedFile:
    """A file of the caller's on our disk; ``label`` is the caller's name for it, never a path."""

    path: Path
    label: str
    sha256: str


@dataclass(frozen=True)
class CalibrationUpload:
    """The parts of POST /calibrate; ``request`` is what `run_idempotent` is given beside it.

    ``labels`` and ``evaluation_labels`` are those of sets whose files have none themselves,
    ``tenant`` is who sends it, and ``limits`` what that one may use; ``act`` is written beside the
    calibration that is made.
    """

    calibration: UploadedFile
    config: str = "{}"
    onnx_models: Sequence[UploadedFile] = ()
    companions: Sequence[UploadedFile] = ()
    evaluation: UploadedFile | None = None
    labels: UploadedFile | None = None
    evaluation_labels: UploadedFile | None = None
    request: KeyedRequest | None = None
    act: AuditEvent | None = None
    limits: TenantLimits = NO_LIMITS
    tenant: str = ""
