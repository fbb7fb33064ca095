"""``GET /calibrations/{id}/model.onnx``: a calibrated model as one file."""

from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from service.exports.export import exported_companion, exported_file
from service.http.dependencies import CalibrationRef, CallDep, in_documents_lane
from service.http.problems import problems

MEDIA_TYPE = "application/octet-stream"
FILE: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}

router = APIRouter(tags=["calibrations"])


@router.get(
    "/calibrations/{calibration_id}/model.onnx",
    summary="Take the calibrated model along, as one ONNX file",
    response_class=FileResponse,
    responses={
        **problems(404, 409, 503, 504),
        200: {
            **FILE,
            "description": "The model with classes, probabilities, intervals and flags as further "
            "outputs.",
            "headers": {
                "Howsure-Parity": {
                    "description": "How the file answered beside the service: rows compared, "
                    "those with another class or bin, and the largest difference of a "
                    "probability.",
                    "schema": {"type": "string"},
                },
                "ETag": {"description": "Digest of the file.", "schema": {"type": "string"}},
            },
        },
    },
)
@in_documents_lane
def get_export(ctx: CallDep, calibration_id: CalibrationRef) -> FileResponse:
    """Return the uploaded model with its head, bins and thresholds as one file.

    The file works without this service. The first call makes it and compares its answers with the
    service. Weights uploaded as `model_data` stay in their own files.
    """
    with ExitStack() as opened:
        found = opened.enter_context(exported_file(ctx, calibration_id))
        return FileResponse(
            found.path,
            media_type=MEDIA_TYPE,
            filename=found.name,
            headers={"Howsure-Parity": str(found.parity), "ETag": f'"{found.sha256}"'},
            background=BackgroundTask(opened.pop_all().close),
        )


@router.get(
    "/calibrations/{calibration_id}/model_data/{name}",
    summary="Read a file of external weights",
    response_class=FileResponse,
    responses={**problems(404, 409), 200: {**FILE, "description": "As it was uploaded."}},
)
def get_model_data(
    ctx: CallDep,
    calibration_id: CalibrationRef,
    name: Annotated[str, Path(description="As the model refers to it.")],
) -> FileResponse:
    """Return a file of external weights, by its name in the model and the calibrated file."""
    with ExitStack() as opened:
        path = opened.enter_context(exported_companion(ctx, calibration_id, name))
        return FileResponse(
            path, media_type=MEDIA_TYPE, background=BackgroundTask(opened.pop_all().close)
        )
