"""``GET /models``: the ONNX models that answer predictions, as this process holds them."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.api.dependencies import ModelsDep
from service.operations.problem import problem_of
from service.runner import ServedModelState

router = APIRouter(tags=["predict"])


class ModelInMemory(BaseModel):
    """An ONNX model that was asked for: loaded, on its way, or why it is not."""

    name: str = Field(
        examples=["digits@1"],
        description="The calibration that it was loaded for; others may share it.",
    )
    sha256: str = Field(description="Digest of the ONNX file, of an ensemble the first.")
    status: Literal["loaded", "loading", "failed", "unloaded"] = Field(
        description="`unloaded` after its process died; the next prediction loads it again."
    )
    problem: dict[str, Any] | None = Field(
        description="Why it did not load, as a problem; null unless `failed`."
    )
    device: str | None = Field(
        examples=["cpu"], description="Where it is loaded; null where it is not."
    )
    provider: str | None = Field(
        examples=["CPUExecutionProvider"], description="The execution provider that runs it."
    )
    memory_bytes: int = Field(
        description="Memory of its process after it was loaded; 0 where it is not."
    )
    pending_requests: int = Field(description="Predictions that wait for it.")
    seconds_unused: float = Field(description="Since it was last asked.")
    parity: Literal["not_needed", "checked", "unchecked"] | None = Field(
        description="Whether its answers were compared with those that it was calibrated by: "
        "`not_needed` with the same provider, `unchecked` with another one where no samples are "
        "stored; null while it is not loaded."
    )
    parity_rows: int = Field(description="On how many stored samples they were compared.")


class ModelsInMemory(BaseModel):
    """All that are held, the one used last first."""

    models: list[ModelInMemory] = Field(description="The one used last first.")


@router.get("/models", summary="Which ONNX models are in memory?")
async def get_models(models: ModelsDep) -> ModelsInMemory:
    """Tell what the server process that answers this has loaded to answer predictions."""
    return ModelsInMemory(models=[_shown(state) for state in models.states()])


def _shown(state: ServedModelState) -> ModelInMemory:
    error = state.error if state.status == "failed" else None
    return ModelInMemory(
        name=state.name,
        sha256=state.sha256,
        status=state.status,
        problem=None if error is None else problem_of(error),
        device=state.device,
        provider=state.provider,
        memory_bytes=state.memory_bytes,
        pending_requests=state.pending,
        seconds_unused=round(state.seconds_unused, 3),
        parity=None if state.parity is None else state.parity.status,
        parity_rows=0 if state.parity is None else state.parity.rows,
    )
