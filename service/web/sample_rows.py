"""Samples on pages: stored ones, and those that a user enters."""

import json
import math
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import msgspec
import numpy as np

import models
from howsure.npz import npz_bytes
from howsure.preprocessing import PIXELS
from howsure.statistics.measures import SCORE, supplied_names
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.requests.media_types import JSON, NPZ
from service.child.requests.predict_request import SCORE_KINDS, SCORES
from service.errors import InvalidInput, NotFound
from service.jobs.samples import ROLE, KeptSamples, PickedSample
from service.predictions.load_calibration import RowInput, row_columns, row_inputs
from service.reports.thumbnail import looks_like_picture, png, shown_pixels
from service.runner.messages.dataset import PAIRS
from service.runner.messages.onnx_models import ANY_INPUT
from service.storage.calibrations import CalibrationRepository
from service.workspace import Workspace

_MOST_DIGITS = 12


def whole_number(name: str, text: str) -> int:
    """Return the number that a part of an address has, such as that of a row.

    Raises
    ------
    InvalidInput
        If the text is no such number.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidInput.at(name, "expected a whole number from 0")
    return int(text)


Taken: TypeAlias = Literal["inputs", "logits", "probabilities", "scores"]

# Keys of a request besides the name of the calibration.
BODY_KEYS = frozenset({ANY_INPUT, *SCORE_KINDS, SCORES, "supplied"})
_PLACE = "numbers"


@dataclass(frozen=True)
class TakenSample:
    """The inputs of one sample of a calibration.

    ``has_pictures`` tells whether it may be a picture file. ``supplied`` names the required
    uncertainties. ``keeps_samples`` tells whether samples are stored. ``columns`` are the names by
    which the numbers of a sample are read; empty without names.
    """

    kind: Taken
    inputs: tuple[RowInput, ...]
    has_pictures: bool
    supplied: tuple[str, ...]
    keeps_samples: bool
    columns: Sequence[str]

    @classmethod
    def by(cls, row: models.Calibration) -> Self:
        """Return the inputs of a succeeded calibration."""
        is_pairs = row.data["kind"] == PAIRS
        kind: Taken = SCORES if is_pairs else row.data["kind"]
        inputs = row_inputs(row)
        n_numbers = sum(math.prod(size or 1 for size in one.shape) for one in inputs)
        return cls(
            kind=kind,
            inputs=inputs,
            has_pictures=row.config.get("preprocessing") is not None,
            supplied=() if is_pairs else supplied_names((row.serve or {}).values()),
            keeps_samples=any(found.role == ROLE for found in row.artifacts),
            columns=row_columns(row, n_numbers),
        )

    def json_body(self, calibration: str, text: str) -> bytes:
        """Return the body of a request from the JSON of one sample.

        The JSON is a list of numbers, an object of numbers by column name or of inputs by name, a
        list of such rows, or the body of a request without the name of the calibration.

        Raises
        ------
        InvalidInput
            If the text is no JSON, or neither a list nor an object.
        """
        try:
            given = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidInput.at(_PLACE, "expected JSON, like [0.5, 1, 2]") from error
        if isinstance(given, Mapping) and given.keys() <= BODY_KEYS:
            asked = dict(given)
        elif self.columns and _is_named_row(given):
            asked = {self.kind: [given]}
        elif isinstance(given, Mapping):
            asked = {ANY_INPUT: {name: [values] for name, values in given.items()}}
        elif self.kind == SCORES:
            asked = {SCORES: given if isinstance(given, list) else [given]}
        elif isinstance(given, list):
            has_names = bool(given) and all(_is_named_row(row) for row in given)
            asked = {self.kind: given if has_names else [given]}
        else:
            raise InvalidInput.at(_PLACE, "expected a list of numbers, or an object of inputs")
        return json.dumps({"calibration": calibration, **asked}).encode()


def _is_named_row(given: object) -> bool:
    """Tell whether a value has a number, or none, for each name."""
    return isinstance(given, Mapping) and not any(
        isinstance(value, list | Mapping | str) for value in given.values()
    )


def ready_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> models.Calibration:
    """Return a succeeded calibration.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading(tenant_id) as session:
        return CalibrationRepository(session, tenant_id).find_ready(reference)


MOST_WRITTEN = 4096


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """A stored sample with its row number, the name of its label and its prediction request.

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
    """Return a stored sample.

    Raises
    ------
    NotFound
        If there is no such calibration, or the sample is not stored.
    Conflict
        If the calibration has not succeeded.
    """
    found, kept = _kept(workspace, tenant_id, reference)
    picked = {} if kept is None else kept.pick([row])
    if row not in picked:
        raise NotFound(f"{found.name}@{found.version} keeps no sample of row {row}.")
    sample = picked[row]
    taken = TakenSample.by(found)
    media_type, body = _asked(sample, taken, str(found.id))
    names = found.config["classes"]
    return DrawnSample(row, names[sample.label], sample, media_type, body)


def _asked(sample: PickedSample, taken: TakenSample, calibration: str) -> tuple[str, bytes]:
    """Return a request in JSON, which people can read, or as .npz if that would be long."""
    if taken.kind == SCORES:
        score = -sample.supplied[SCORE]
        return JSON, json.dumps({"calibration": calibration, SCORES: [score]}).encode()
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
    return NPZ, npz_bytes(arrays | columns)


def any_row(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> int:
    """Return the row number of a random stored sample.

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
    return int(secrets.choice(kept.numbers()))


def _kept(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> tuple[models.Calibration, KeptSamples | None]:
    row = ready_calibration(workspace, tenant_id, reference)
    return row, KeptSamples.of(workspace.artifacts, row)


def sample_picture(sample: PickedSample, *, most: int) -> bytes | None:
    """Return a PNG of the only input, at most ``most`` pixels a side; None if it is no picture.

    Pixels are shown unchanged. Other values are scaled to the range of the sample.
    """
    if len(sample.inputs) != 1:
        return None
    [(name, values)] = sample.inputs.items()
    if not looks_like_picture(values.shape):
        return None
    is_pixels = name == PIXELS and values.dtype == np.uint8
    return png(values if is_pixels else shown_pixels(values), most=most)
