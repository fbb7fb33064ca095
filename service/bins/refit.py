"""Refit of a finished calibration from its records: a new version, without running the model."""

import json
import uuid
from dataclasses import replace
from typing import Any

import models
from howsure.statistics.findings import UPLOAD_FINDINGS
from service.calibrations.config import CalibrationConfig, parse_config
from service.calibrations.fit_config import FitConfig
from service.calibrations.upload.set_checks import checked_options
from service.errors import InvalidConfig, InvalidInput
from service.jobs.acceptance import CallContext, accepted
from service.jobs.record_set import require_records
from service.runner.model_description import ModelDescription
from service.storage.calibrations import CalibrationRepository

# Keys of a configuration whose values are objects.
BLOCKS = ("interval", "ood")


def start_refit(ctx: CallContext, reference: str, changes: FitConfig) -> uuid.UUID:
    """Queue a refit with these changes to the configuration; return the new calibration's id.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded, or it keeps no records.
    InvalidInput
        If nothing changes, or a change needs what the records do not hold.
    JobLimitReached
        If the tenant has too many unfinished jobs.
    """
    calibration_id = uuid.uuid4()
    # It shares the files of its source and stores none.
    limits = replace(ctx.limits, stored_bytes=0)
    with accepted(replace(ctx, limits=limits), calibration_id) as session:
        repository = CalibrationRepository(session, ctx.tenant_id)
        source = repository.find_ready(reference)
        require_records(source)
        config = _changed(source, changes)
        # The fit finds all others again, in the records.
        findings = [found for found in source.findings if found["code"] in UPLOAD_FINDINGS]
        row = models.Calibration(id=calibration_id, config=config, warnings=[], findings=findings)
        repository.add_refit(source.id, row)
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
    checked_options(
        parse_config(json.dumps(resolved), CalibrationConfig),
        tuple(resolved["top_k"]),
        kind=source.data["kind"],
        supplied=source.data.get("supplied", []),
        model=ModelDescription.of(source),
    )
    return resolved


def _asked(changes: FitConfig, before: dict[str, Any]) -> dict[str, Any]:
    """Return the changed keys; the omitted keys of a block keep their values."""
    asked = changes.model_dump(mode="json", include=changes.model_fields_set)
    blocks = changes.model_dump(mode="json", include=set(BLOCKS), exclude_unset=True)
    return asked | {name: before[name] | block for name, block in blocks.items()}
