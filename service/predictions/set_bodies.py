"""Sets as prediction requests: a child process reads them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import NUMBERED_SET_ROWS, SET_ROWS
from service.child.requests.predict_request import SCORE_KINDS
from service.child.requests.tensors import PLACE, as_input
from service.errors import TooLarge
from service.http.uploads import full_storage
from service.predictions.served_calibration import ServedCalibration
from service.runner.messages.dataset import PAIRS, Batch, DatasetInfo, join_batches
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.onnx_models import read_resolved, read_table_columns
from service.runner.messages.reading import Reading
from service.runner.messages.set_messages import SetToRead
from service.runner.set_reader import UploadedSet
from service.storage.shards import shard_buffers
from service.workspace import Workspace


@dataclass(frozen=True)
class SetRows:
    """The rows of a set as a shard without labels, their number, and the type of this body."""

    shard: bytes
    n_rows: int
    media_type: str


def read_set_rows(
    workspace: Workspace, served: ServedCalibration, content: bytes, *, seconds: float
) -> SetRows:
    """Return the rows of a set.

    Raises
    ------
    InvalidInput, UnsupportedFormat
        If the set breaks a rule; the violation names the row or the picture.
    TooLarge
        If it has more rows, or more bytes once read, than a request may have.
    SandboxUnavailable
        If child processes cannot be sandboxed here.
    Overloaded
        If no process can be started, or the disk is full.
    """
    limits = workspace.limits.bodies
    bounds = DatasetLimits(
        max_samples=limits.max_rows,
        max_inflated_bytes=limits.max_bytes,
        max_row_bytes=limits.max_bytes,
    )
    with as_input(), tempfile.NamedTemporaryFile(dir=workspace.spool.path) as file:
        path = Path(file.name)
        with full_storage():
            path.write_bytes(content)
        asked = SetToRead(path, PLACE, _reading(served), labels_required=False)
        with workspace.runners.reader.read([asked], bounds, seconds=seconds) as (uploaded,):
            _check_size(uploaded.info, limits)
            batch = _all_rows(uploaded)
            by_index = uploaded.info.kind in SCORE_KINDS and uploaded.info.class_map is None
    shard = b"".join(shard_buffers(batch, labelled=False))
    media_type = NUMBERED_SET_ROWS if by_index else SET_ROWS
    return SetRows(shard, uploaded.info.n_samples, media_type)


def _reading(served: ServedCalibration) -> Reading:
    if served.onnx_model is None:
        if served.has_classes:
            return Reading(classes=served.class_names, known_texts=served.texts)
        return Reading(
            kind=PAIRS,
            score_range=served.score_range,
            known_texts=served.texts,
            wants_labels=False,
        )
    resolved = served.onnx_model.resolved
    return Reading(
        preprocessing=read_resolved(resolved).preprocessing,
        columns=read_table_columns(resolved),
        takes_other_columns=served.takes_other_columns,
        wants_labels=False,
        kind="inputs",
    )


def _check_size(info: DatasetInfo, limits: BodyLimits) -> None:
    if info.row_bytes * info.n_samples > limits.max_bytes:
        raise TooLarge.at(
            PLACE,
            f"expected rows of at most {limits.max_bytes} bytes in all once they are read, got "
            f"{info.n_samples} of {info.row_bytes}; send fewer at once",
        )


def _all_rows(uploaded: UploadedSet) -> Batch:
    if len(uploaded.trial.labels) == uploaded.info.n_samples:
        return uploaded.trial
    parts = list(uploaded.shards())
    return parts[0] if len(parts) == 1 else join_batches(parts)
