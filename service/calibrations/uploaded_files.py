"""The files of ``POST /calibrate``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import models
from service.http.uploads import SpooledFile
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles


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
