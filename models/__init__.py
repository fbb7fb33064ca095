"""The tables; importing this package registers every one of them."""

from models.api_key import ApiKey
from models.artifact import Artifact, ArtifactRole, ReleasedFile
from models.audit_entry import AuditEntry, AuditResult, AuditVia
from models.base import Base, FiniteNumber, UtcDateTime, database_now
from models.bin_table import Bin, BinTable
from models.calibration import Calibration, CalibrationName
from models.evaluation import Evaluation, SetRole
from models.export import Export
from models.idempotency_key import IdempotencyKey
from models.job import UNFINISHED, Job, JobStatus
from models.operating_point import OperatingPoint
from models.row_bytes import Weighed, bytes_of
from models.tenant import DEFAULT_TENANT, Tenant, TenantLimit

__all__ = [
    "DEFAULT_TENANT",
    "UNFINISHED",
    "ApiKey",
    "Artifact",
    "ArtifactRole",
    "AuditEntry",
    "AuditResult",
    "AuditVia",
    "Base",
    "Bin",
    "BinTable",
    "Calibration",
    "CalibrationName",
    "Evaluation",
    "Export",
    "FiniteNumber",
    "IdempotencyKey",
    "Job",
    "JobStatus",
    "OperatingPoint",
    "ReleasedFile",
    "SetRole",
    "Tenant",
    "TenantLimit",
    "UtcDateTime",
    "Weighed",
    "bytes_of",
    "database_now",
]
