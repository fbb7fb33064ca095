"""The tables; importing this package registers every one of them."""

from models.api_key import ApiKey
from models.artifact import Artifact, ArtifactRole
from models.base import Base
from models.bin import Bin
from models.bin_table import BinTable
from models.calibration import Calibration
from models.calibration_name import CalibrationName
from models.clock import database_now
from models.evaluation import Evaluation
from models.export import Export
from models.idempotency_key import IdempotencyKey
from models.job import UNFINISHED, Job, JobStatus
from models.score import Score, ScorePhase, SubjectKind
from models.tenant import DEFAULT_TENANT, Tenant
from models.utc_datetime import UtcDateTime

__all__ = [
    "DEFAULT_TENANT",
    "UNFINISHED",
    "ApiKey",
    "Artifact",
    "ArtifactRole",
    "Base",
    "Bin",
    "BinTable",
    "Calibration",
    "CalibrationName",
    "Evaluation",
    "Export",
    "IdempotencyKey",
    "Job",
    "JobStatus",
    "Score",
    "ScorePhase",
    "SubjectKind",
    "Tenant",
    "UtcDateTime",
    "database_now",
]
