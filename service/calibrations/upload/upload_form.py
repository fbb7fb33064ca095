"""Multipart forms of uploads: their OpenAPI schema, the rules of their parts, and their files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import models
from service.http.uploads import PartRule, SpooledFile, UploadLimits
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles

# Files that may be sent more than once. All other files are sets or their labels.
REPEATABLE = ("model", "model_data")

_FILE = {"type": "string", "format": "binary"}


def form_body(
    files: Mapping[str, str], *, required: Collection[str], **texts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request body of a form in OpenAPI: files by description, texts by schema."""
    properties: dict[str, Any] = {
        name: ({"type": "array", "items": _FILE} if name in REPEATABLE else _FILE)
        | {"description": description}
        for name, description in files.items()
    }
    schema = {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": properties | texts,
    }
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def part_rules(
    limits: UploadLimits, files: Collection[str], texts: Mapping[str, int]
) -> dict[str, PartRule]:
    """Return the rules of a form's parts; texts with their limits in bytes."""
    sizes = {"model": limits.max_model_bytes, "model_data": limits.max_model_data_bytes}
    rules = {
        name: PartRule(
            max_bytes=sizes.get(name, limits.max_dataset_bytes),
            repeatable=name in REPEATABLE,
            is_file=True,
        )
        for name in files
    }
    return rules | {
        name: PartRule(max_bytes=size, repeatable=False, is_file=False)
        for name, size in texts.items()
    }


@dataclass(frozen=True)
class CalibrationUpload:
    """The parts of ``POST /calibrate``.

    ``sets`` holds each set and its separate labels, if there are any, by the name of its part.
    """

    sets: Mapping[models.ArtifactRole, tuple[SpooledFile, SpooledFile | None]]
    config: str = "{}"
    onnx_models: Sequence[SpooledFile] = ()
    companions: Sequence[SpooledFile] = ()

    def model_files(self, tenant: str) -> OnnxModelFiles | None:
        """Return the files of the model; None where there is none."""
        if not self.onnx_models:
            return None
        model, *members = self.onnx_models
        return OnnxModelFiles(
            path=model.path,
            companions={c.label: c.path for c in self.companions},
            sha256=model.sha256,
            companion_sha256={c.label: c.sha256 for c in self.companions},
            members=tuple(OnnxMember(member.path, member.sha256) for member in members),
            tenant=tenant,
        )
