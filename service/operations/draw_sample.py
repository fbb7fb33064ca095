"""A kept sample, and what has to be sent to have it answered."""

import json
import secrets
import uuid
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import models
from service.bodies import JSON, NPZ
from service.datasets.shards import npz_content
from service.datasets.supplied import SUPPLIED_PREFIX
from service.errors import NotFound
from service.operations.kept_samples import KeptSamples
from service.operations.picked_samples import PickedSample, kept_numbers, pick_samples
from service.operations.taken_sample import TakenSample, ready_calibration
from service.operations.workspace import Workspace

MOST_WRITTEN = 4096


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """A sample by its number in the set, with the name of its label and what it is asked with.

    ``media_type`` and ``body`` are those of ``POST /predict``.
    """

    row: int
    label_name: str
    sample: PickedSample
    media_type: str
    body: bytes


def draw_sample(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, row: int
) -> DrawnSample:
    """Return a kept sample.

    Raises
    ------
    NotFound
        If there is no such calibration, or it keeps no such sample.
    Conflict
        If the calibration has not succeeded.
    """
    found, kept = _kept(workspace, tenant_id, reference)
    picked = {} if kept is None else pick_samples(kept, [row])
    if row not in picked:
        raise NotFound(f"{found.name}@{found.version} keeps no sample of row {row}.")
    sample = picked[row]
    taken = TakenSample.by(found)
    media_type, body = _asked(sample, taken, str(found.id))
    names = cast("dict[str, Any]", found.config)["classes"]
    return DrawnSample(row, names[sample.label], sample, media_type, body)


def _asked(sample: PickedSample, taken: TakenSample, calibration: str) -> tuple[str, bytes]:
    """Return a body that people can read, unless it would be long: the answer is the same."""
    arrays = {name: values[np.newaxis] for name, values in sample.inputs.items()}
    supplied = {name: [sample.supplied[name]] for name in taken.supplied}
    is_short = sum(values.size for values in arrays.values()) <= MOST_WRITTEN
    if is_short and all(values.dtype != np.bool_ for values in arrays.values()):
        written: dict[str, Any] = {name: values.tolist() for name, values in arrays.items()}
        asked = {"calibration": calibration} | (
            {"inputs": written} if taken.kind == "inputs" else written
        )
        return JSON, json.dumps(asked | ({"supplied": supplied} if supplied else {})).encode()
    columns = {f"{SUPPLIED_PREFIX}{name}": np.array(found) for name, found in supplied.items()}
    return NPZ, npz_content(arrays | columns)


def any_row(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> int:
    """Return the number of a kept sample, any of them.

    Raises
    ------
    NotFound
        If there is no such calibration, or it keeps no samples.
    Conflict
        If the calibration has not succeeded.
    """
    found, kept = _kept(workspace, tenant_id, reference)
    if kept is None:
        raise NotFound(f"{found.name}@{found.version} keeps no samples.")
    return int(secrets.choice(kept_numbers(kept)))


def _kept(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> tuple[models.Calibration, KeptSamples | None]:
    row = ready_calibration(workspace, tenant_id, reference)
    return row, KeptSamples.of(workspace.artifacts, row)
