"""The answer to a dry run of ``POST /calibrate``."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from service.calibrations import start as operation
from service.calibrations.config import CalibrationConfig
from service.calibrations.findings import plain_findings
from service.calibrations.manage import get_calibration
from service.calibrations.routes import Calibration, Finding, rendered_findings, resource
from service.calibrations.start import dry_run as try_upload
from service.calibrations.start import start_calibration
from service.calibrations.uploaded_files import CalibrationUpload, UploadedFile
from service.errors import InvalidInput
from service.http.dependencies import ActDep, LimitsDep, ServicesDep, WorkspaceDep
from service.http.idempotency import (
    IDEMPOTENCY_KEY_HEADER,
    idempotency_key,
    keyed_request,
    run_idempotent,
    tell_replayed,
)
from service.http.job_events import PREFER_HEADER, is_finished
from service.http.problems import problems
from service.http.upload_quota import received_upload
from service.http.uploads import PartRule, SpooledFile, SpooledUpload, UploadLimits


class RunCost(BaseModel):
    """What the calibration would take."""

    samples: int = Field(description="Of both sets.")
    passes: int = Field(description="Runs of the whole model for each; 0 without a model.")
    rows: int = Field(description="Rows through the model: samples times passes.")
    ms_per_row: float | None = Field(
        description="Milliseconds for all passes of a sample, as a few of the first took."
    )
    seconds: float | None = Field(description="Of the model over all samples, on one device.")
    device: str | None = Field(examples=["cpu"], description="Where that was measured.")
    stored_bytes: dict[str, int] = Field(
        examples=[{"model": 40_000, "sets": 2_000_000, "records": 900_000}],
        description="Of `model`, of `sets` until the job has ended, and of `records`.",
    )


class DryRun(BaseModel):
    """What a calibration would be; nothing of it was kept."""

    findings: list[Finding] = Field(description="What looks wrong with it.")
    warnings: list[str] = Field(description="Sentences worth reading.")
    cost: RunCost = Field(description="What the calibration would take.")
    config: dict[str, Any] = Field(description="The configuration as resolved.")
    model: dict[str, Any] | None = Field(
        description="The ONNX model as found; null when its outputs were uploaded."
    )
    data: dict[str, Any] = Field(description="Digest, samples and class counts.")


def dry_run_answer(tried: operation.DryRun) -> DryRun:
    """Render what was found."""
    onnx_model = None if tried.onnx_model is None else dict(tried.onnx_model)
    if onnx_model is not None:
        # Of each measure; those of a sample are in the cost.
        onnx_model.pop("costs")
    return DryRun(
        findings=rendered_findings(plain_findings(tried.findings)),
        warnings=tried.warnings,
        cost=RunCost.model_validate(operation.plain_cost(tried.cost)),
        config=dict(tried.config),
        model=onnx_model,
        data=dict(tried.data),
    )


MAX_CONFIG_BYTES = 8 * 1024**2
MAX_NAME_BYTES = 1000

SETS = ("calibration", "calibration_labels", "evaluation", "evaluation_labels")

router = APIRouter(tags=["calibrations"])

_FILE = {"type": "string", "format": "binary"}
REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["calibration"],
                "additionalProperties": False,
                "properties": {
                    "model": {
                        "type": "array",
                        "items": _FILE,
                        "description": "An ONNX classifier; several are an ensemble.",
                    },
                    "model_data": {
                        "type": "array",
                        "items": _FILE,
                        "description": "Companion files with the model's external weights.",
                    },
                    "calibration": _FILE
                    | {"description": "Labelled samples, of any format that is read."},
                    "calibration_labels": _FILE
                    | {"description": "Labels of a calibration set in .npy, as .npy."},
                    "evaluation": _FILE
                    | {"description": "A second labelled set, used for scores only."},
                    "evaluation_labels": _FILE
                    | {"description": "Labels of an evaluation set in .npy, as .npy."},
                    "config": {"$ref": "#/components/schemas/CalibrationConfig"},
                    "name": {
                        "type": "string",
                        "description": "What it is called, in the place of the configuration's.",
                    },
                },
            },
            "encoding": {"config": {"contentType": "application/json"}},
        }
    },
}
SCHEMAS = {
    "CalibrationConfig": CalibrationConfig.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
}


def _rules(limits: UploadLimits) -> Mapping[str, PartRule]:
    a_set = PartRule(max_bytes=limits.max_dataset_bytes, repeatable=False, is_file=True)
    return {
        "model": PartRule(max_bytes=limits.max_model_bytes, repeatable=True, is_file=True),
        "model_data": PartRule(
            max_bytes=limits.max_model_data_bytes, repeatable=True, is_file=True
        ),
        **dict.fromkeys(SETS, a_set),
        "config": PartRule(max_bytes=MAX_CONFIG_BYTES, repeatable=False, is_file=False),
        "name": PartRule(max_bytes=MAX_NAME_BYTES, repeatable=False, is_file=False),
    }


@router.post(
    "/calibrate",
    summary="Calibrate a classifier",
    status_code=HTTPStatus.ACCEPTED,
    response_model=Calibration,
    responses={
        **problems(400, 413, 415, 422, 504, 507),
        200: {"model": DryRun, "description": "What it would be, with `dry_run`."},
        201: {"model": Calibration, "description": "Done within `Prefer: wait`."},
    },
    openapi_extra={
        "requestBody": REQUEST_BODY,
        "parameters": [PREFER_HEADER, IDEMPOTENCY_KEY_HEADER],
    },
)
async def post_calibrate(
    request: Request,
    response: Response,
    workspace: WorkspaceDep,
    act: ActDep,
    limits: LimitsDep,
    services: ServicesDep,
    *,
    dry_run: Annotated[
        bool, Query(description="Check and cost it only: nothing is kept, and no name is taken.")
    ] = False,
) -> Calibration | JSONResponse:
    """Check the upload, queue the calibration and answer with its resource.

    The upload streams to disk. What is wrong with it is answered at once and leaves nothing
    behind; what only a full run over the data can show ends the calibration as `failed`.
    """
    tenant_id, key = act.tenant_id, None if dry_run else idempotency_key(request)
    async with received_upload(
        request,
        workspace,
        tenant_id,
        limits,
        parts=_rules(services.upload_limits),
        key=key,
        queues=not dry_run,
    ) as spooled:
        upload = replace(_upload(spooled), limits=limits, tenant=str(tenant_id))
        if dry_run:
            tried = await services.lanes.upload.run(try_upload, workspace, upload)
            return JSONResponse(dry_run_answer(tried).model_dump(mode="json"))
        keyed = keyed_request(key, request, _content(upload))
        start = partial(
            start_calibration, workspace, tenant_id, replace(upload, request=keyed, act=act)
        )
        started = await services.lanes.upload.run(
            run_idempotent, workspace, tenant_id, keyed, start
        )
    calibration_id = str(started.calibration_id)
    row = await services.job_watch.wait_until_finished(
        request, lambda: get_calibration(workspace, tenant_id, calibration_id)
    )
    tell_replayed(response, started)
    response.headers["Location"] = f"/calibrations/{calibration_id}"
    if seconds := services.job_watch.wait_seconds(request):
        response.headers["Preference-Applied"] = f"wait={seconds:g}"
    if is_finished(row):
        response.status_code = HTTPStatus.CREATED
    return await run_in_threadpool(resource, workspace, tenant_id, row)


def _upload(spooled: SpooledUpload) -> CalibrationUpload:
    sets = {name: _file(found) for name in SETS for found in spooled.files(name)}
    if "calibration" not in sets:
        raise InvalidInput.at("calibration", "this part is required: a labelled calibration set")
    companions = [_file(found) for found in spooled.files("model_data")]
    labels = [companion.label for companion in companions]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InvalidInput.at("model_data", f"two companions are named {twice!r}")
    return CalibrationUpload(
        calibration=sets["calibration"],
        config=_named(spooled.text("config") or "{}", spooled.text("name") or ""),
        onnx_models=[_file(found) for found in spooled.files("model")],
        companions=companions,
        evaluation=sets.get("evaluation"),
        labels=sets.get("calibration_labels"),
        evaluation_labels=sets.get("evaluation_labels"),
    )


def _named(config: str, name: str) -> str:
    """Return the configuration with this name, if one is given; what is wrong with it, it stays."""
    try:
        asked = json.loads(config) if name else None
    except (ValueError, RecursionError):
        return config
    return json.dumps(asked | {"name": name}) if isinstance(asked, dict) else config


def _content(upload: CalibrationUpload) -> list[object]:
    """Return what tells an upload from another, as plain data."""
    named = {
        "model": upload.onnx_models,
        "model_data": upload.companions,
        "calibration": [upload.calibration],
        "calibration_labels": [upload.labels],
        "evaluation": [upload.evaluation],
        "evaluation_labels": [upload.evaluation_labels],
    }
    files = [
        [name, file.label, file.sha256]
        for name, found in named.items()
        for file in found
        if file is not None
    ]
    return [upload.config, *files]


def _file(found: SpooledFile) -> UploadedFile:
    return UploadedFile(path=found.path, label=found.label, sha256=found.sha256)
