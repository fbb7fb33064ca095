"""What a calibration takes to answer one sample, and that sample as a request."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast

import msgspec

import models
from service.bodies.request import ANY_INPUT, SCORE_KINDS
from service.core.measures import SUPPLIED, is_supplied
from service.errors import InvalidInput
from service.operations.kept_samples import ROLE
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository

Taken: TypeAlias = Literal["inputs", "logits", "probabilities"]

# What a request has beside the name of the calibration.
BODY_KEYS = frozenset({ANY_INPUT, *SCORE_KINDS, "supplied"})
_PLACE = "numbers"


@dataclass(frozen=True)
class TakenInput:
    """One array of a sample, without an axis for rows; a size that is free is None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class TakenSample:
    """What one sample of a calibration is made of.

    ``has_pictures`` tells whether the file of a picture will do; ``supplied`` names the columns
    that have to come with it, and ``keeps_samples`` whether there are some to be drawn.
    """

    kind: Taken
    inputs: tuple[TakenInput, ...]
    has_pictures: bool
    supplied: tuple[str, ...]
    keeps_samples: bool

    @classmethod
    def by(cls, row: models.Calibration) -> Self:
        """Return what a calibration takes that has succeeded."""
        config = cast("dict[str, Any]", row.config)
        data, serve = cast("dict[str, Any]", row.data), cast("dict[str, str]", row.serve or {})
        supplied = dict.fromkeys(m.removeprefix(SUPPLIED) for m in serve.values() if is_supplied(m))
        if row.onnx_model is None:
            shape = (len(config["classes"]),)
            inputs: tuple[TakenInput, ...] = (TakenInput(data["kind"], "float32", shape),)
        else:
            inputs = tuple(
                TakenInput(found["name"], found["dtype"], tuple((found["shape"] or [None])[1:]))
                for found in cast("dict[str, Any]", row.onnx_model)["inputs"]
            )
        return cls(
            kind=data["kind"],
            inputs=inputs,
            has_pictures=config.get("preprocessing") is not None,
            supplied=tuple(supplied),
            keeps_samples=any(found.role == ROLE for found in row.artifacts),
        )

    def json_body(self, calibration: str, text: str) -> bytes:
        """Return the body of a request, of the JSON that was written of one sample.

        It is its numbers, or an object of its inputs by name; or what a request has beside the name
        of the calibration.

        Raises
        ------
        InvalidInput
            If it is no JSON, or neither a list nor an object.
        """
        try:
            given = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidInput.at(_PLACE, "expected JSON, like [0.5, 1, 2]") from error
        if isinstance(given, Mapping) and given.keys() <= BODY_KEYS:
            asked = dict(given)
        elif isinstance(given, Mapping):
            asked = {ANY_INPUT: {name: [values] for name, values in given.items()}}
        elif isinstance(given, list):
            asked = {self.kind: [given]}
        else:
            raise InvalidInput.at(_PLACE, "expected a list of numbers, or an object of inputs")
        return json.dumps({"calibration": calibration, **asked}).encode()


def ready_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> models.Calibration:
    """Return a calibration that answers.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading() as session:
        return CalibrationRepository(session, tenant_id).find_ready(reference)
