"""Fit a finished calibration anew from its records: a new version, without running the model."""

import json
import uuid
from dataclasses import replace
from typing import Any

import models
from howsure.statistics.findings import UPLOAD_FINDINGS
from service.access.audit_log import AuditEvent, record_success
from service.access.quotas import enforce_quotas
from service.access.rate_limits import NO_LIMITS, TenantLimits
from service.calibrations.config import CalibrationConfig, parse_config
from service.calibrations.fit_config import FitConfig
from service.calibrations.set_checks import checked_options
from service.errors import InvalidConfig, InvalidInput
from service.jobs.record_set import require_records
from service.runner.model_description import ModelDescription
from service.storage.calibrations import CalibrationRepository
from service.storage.idempotency_keys import KeyedRequest, keep_key
from service.workspace import Workspace

# Keys of a configuration that have keys of their own.
BLOCKS = ("interval", "ood")


def start_refit(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    changes: FitConfig,
    request: KeyedRequest | None = None,
    *,
    act: AuditEvent | None = None,
    limits: TenantLimits = NO_LIMITS,
) -> uuid.UUID:
    """Queue a refit with these changes to the configuration; return the new calibration's id.

    ``request`` is what `run_idempotent` was given.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded, or it keeps no records.
    InvalidInput
        If nothing changes, or a change needs what the records do not hold.
    JobLimitReached
        If the tenant has as many jobs unfinished as it may.
    """
    with workspace.database.session(invalidates_cache=False) as session:
        repository = CalibrationRepository(session, tenant_id)
        source = repository.find_ready(reference)
        require_records(source)
        config = _changed(source, changes)
        calibration_id = uuid.uuid4()
        # All others are found anew, in the records.
        findings = [found for found in source.findings if found["code"] in UPLOAD_FINDINGS]
        row = models.Calibration(id=calibration_id, config=config, warnings=[], findings=findings)
        repository.add_refit(source.id, row)
        record_success(act, session, calibration_id)
        keep_key(session, tenant_id, request, calibration_id)
        # It stores nothing: its files are those of the other.
        enforce_quotas(session, tenant_id, replace(limits, stored_bytes=0))
    workspace.job_available.release()
    return calibration_id


def _changed(source: models.Calibration, changes: FitConfig) -> dict[str, Any]:
    before = source.config
    asked = _asked(changes, before)
    if not asked:
        raise InvalidInput.at("body", "expected at least one option to change")
    events = asked.get("top_k") or before["top_k"]
    missing = [k for k in events if k not in before["top_k"]]
    if missing:
        raise InvalidConfig.at(
            "config.top_k",
            f"the records hold the events {before['top_k']}, not {missing}; calibrate anew",
        )
    measures = asked.get("measures", before["measures"])
    if "serve" not in asked:
        asked["serve"] = {
            k: m for k, m in before["serve"].items() if int(k) in events and m in measures
        }
    resolved = before | asked | {"top_k": sorted(events)}
    data = source.data
    model = ModelDescription.of(source)
    checked_options(
        _validated(resolved),
        tuple(resolved["top_k"]),
        logits=data["kind"] == "logits" if model is None else model.predicts_logits,
        supplied=data.get("supplied", []),
        outputs=None if model is None else model.scalar_outputs,
        passes=None if model is None else [plan.measure for plan in model.passes],
    )
    return resolved


def _asked(changes: FitConfig, before: dict[str, Any]) -> dict[str, Any]:
    """Return what is to change, whole: of a block, what is not asked for stays as it was."""
    asked = changes.model_dump(mode="json", include=changes.model_fields_set)
    blocks = changes.model_dump(mode="json", include=set(BLOCKS), exclude_unset=True)
    return asked | {name: before[name] | block for name, block in blocks.items()}


def _validated(resolved: dict[str, Any]) -> CalibrationConfig:
    """Check the options as they stand together, changed and unchanged ones."""
    return parse_config(json.dumps(resolved), CalibrationConfig)
