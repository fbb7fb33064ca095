"""``POST /calibrate``: an upload becomes a calibration, or only a dry run."""

import json
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from models import ArtifactRole
from service.calibrations.config import MAX_CONFIG_BYTES
from service.calibrations.routes import calibration_response, start_once
from service.calibrations.schemas import Calibration, DryRun
from service.calibrations.start import dry_run as try_upload
from service.calibrations.start import start_calibration
from service.calibrations.upload.upload_form import CalibrationUpload, form_body, part_rules
from service.errors import InvalidConfig, InvalidInput
from service.http.dependencies import CallDep, ServicesDep
from service.http.idempotency import IDEMPOTENCY_KEY_HEADER, idempotency_key
from service.http.job_events import PREFER_HEADER
from service.http.problems import problems
from service.http.upload_quota import received_upload
from service.http.uploads import SpooledFile, SpooledUpload

# Parts that are files, in the order of the digest for idempotency keys.
FILES = {
    "model": "An ONNX classifier; several are an ensemble.",
    "model_data": "Companion files with the model's external weights.",
    "calibration": "Labelled samples, of any format that is read.",
    "calibration_labels": "Labels of a calibration set in .npy, as .npy.",
    "evaluation": "A second labelled set, used for scores only.",
    "evaluation_labels": "Labels of an evaluation set in .npy, as .npy.",
}
TEXTS = {"config": MAX_CONFIG_BYTES, "name": 1000, "preprocessing": 10_000}

router = APIRouter(tags=["calibrations"])

REQUEST_BODY = form_body(
    FILES,
    required=["calibration"],
    config={"$ref": "#/components/schemas/CalibrationConfig"},
    name={
        "type": "string",
        "description": "Its name; takes precedence over the configuration's.",
    },
    preprocessing={
        "type": "string",
        "description": "Preprocessing of pictures: a preset, or JSON; takes precedence over the "
        "configuration's.",
    },
)
REQUEST_BODY["content"]["multipart/form-data"]["encoding"] = {
    "config": {"contentType": "application/json"}
}
DESCRIPTION = """\
Check the upload, queue the calibration and respond with its state. The upload streams to disk. A
problem with the upload gets a response at once, and nothing is stored. A problem that only a full
run over the data shows ends the calibration as `failed`.

The part `config` is JSON; every key of its schema, `CalibrationConfig`, is optional.
"""


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
        "description": DESCRIPTION,
        "requestBody": REQUEST_BODY,
        "parameters": [PREFER_HEADER, IDEMPOTENCY_KEY_HEADER],
    },
)
async def post_calibrate(
    request: Request,
    response: Response,
    ctx: CallDep,
    services: ServicesDep,
    *,
    dry_run: Annotated[
        bool, Query(description="Check and cost it only: nothing is kept, and no name is taken.")
    ] = False,
) -> Calibration | JSONResponse:
    """Check the upload, queue the calibration and respond with its state."""
    async with received_upload(
        request,
        ctx.workspace,
        ctx.tenant_id,
        ctx.limits,
        parts=part_rules(services.upload_limits, FILES, TEXTS),
        key=None if dry_run else idempotency_key(request),
        dry_run=dry_run,
    ) as spooled:
        upload = _upload(spooled)
        if dry_run:
            tried = await services.lanes.upload.run(
                ctx.tenant_id, try_upload, ctx.workspace, ctx.tenant_id, upload
            )
            return JSONResponse(tried.model_dump(mode="json"))
        start = partial(start_calibration, upload=upload)
        content = _content(upload, spooled)
        started = await start_once(request, ctx, content, start, lane=services.lanes.upload)
    return await calibration_response(request, response, ctx, services, started)


def _upload(spooled: SpooledUpload) -> CalibrationUpload:
    if not spooled.files("calibration"):
        raise InvalidInput.at("calibration", "this part is required: a labelled calibration set")
    roles: tuple[ArtifactRole, ...] = ("calibration", "evaluation")
    sets: dict[ArtifactRole, tuple[SpooledFile, SpooledFile | None]] = {}
    for role in roles:
        labels = next(iter(spooled.files(f"{role}_labels")), None)
        for file in spooled.files(role):
            sets[role] = file, labels
        if labels is not None and role not in sets:
            raise InvalidInput.at(f"{role}_labels", f"there is no {role} set to label")
    companions = spooled.files("model_data")
    names = [companion.label for companion in companions]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput.at("model_data", f"two companions are named {twice!r}")
    return CalibrationUpload(
        sets,
        config=_config(spooled),
        onnx_models=spooled.files("model"),
        companions=companions,
    )


def _config(spooled: SpooledUpload) -> str:
    """Return the configuration with the values that have parts of their own.

    Invalid JSON stays as it is. Forms send empty parts for fields that are not filled in.
    """
    config = spooled.text("config") or "{}"
    name = spooled.text("name") or ""
    preprocessing = (spooled.text("preprocessing") or "").strip()
    own: dict[str, Any] = {"name": name} if name else {}
    try:
        asked = json.loads(config) if name or preprocessing else None
    except (ValueError, RecursionError):
        return config
    if preprocessing:
        own["preprocessing"] = _preprocessing(preprocessing)
    return json.dumps(asked | own) if isinstance(asked, dict) else config


def _preprocessing(text: str) -> object:
    """Return the object in a JSON text; any other text is the name of a preset.

    Raises
    ------
    InvalidConfig
        If the text begins like an object and is not JSON.
    """
    if not text.startswith("{"):
        return text.strip('"')
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidConfig.at("preprocessing", f"this is no valid JSON: {error}") from error


def _content(upload: CalibrationUpload, spooled: SpooledUpload) -> list[object]:
    """Return the data that tells an upload from another, with digests in the place of files."""
    files = [[name, file.label, file.sha256] for name in FILES for file in spooled.files(name)]
    return [upload.config, *files]
