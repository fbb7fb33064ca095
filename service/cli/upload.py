"""Sending what a calibration is made of."""

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from service.cli.failure import check
from service.cli.packed_folder import one_file


@dataclass(frozen=True)
class Upload:
    """The files and the configuration of ``POST /calibrate``."""

    calibration: Path
    onnx_models: Sequence[Path] = ()
    model_data: Sequence[Path] = ()
    evaluation: Path | None = None
    labels: Path | None = None
    evaluation_labels: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def files(self) -> list[tuple[str, Path]]:
        """Return each file with the name of its part."""
        files = [("model", path) for path in self.onnx_models]
        files += [("model_data", path) for path in self.model_data]
        files += [("calibration", self.calibration)]
        further = {
            "evaluation": self.evaluation,
            "calibration_labels": self.labels,
            "evaluation_labels": self.evaluation_labels,
        }
        return files + [(part, path) for part, path in further.items() if path is not None]


def send_upload(client: httpx.Client, upload: Upload, *, dry_run: bool = False) -> dict[str, Any]:
    """Send an upload, to be calibrated or only to be tried; return the answer.

    Raises
    ------
    CommandFailed
        If it is refused.
    """
    # Whoever sends it again, a proxy for one, makes no second calibration.
    key = {"Idempotency-Key": f'"{uuid.uuid4()}"'}
    with ExitStack() as stack:
        parts: list[tuple[str, Any]] = []
        for part, path in upload.files():
            file = stack.enter_context(one_file(path))
            parts.append((part, (path.name, stack.enter_context(file.open("rb")))))
        parts.append(("config", (None, json.dumps(upload.config))))
        asked = {"dry_run": "true"} if dry_run else {}
        response = client.post("/calibrate", files=parts, params=asked, headers=key, timeout=None)
    answer: dict[str, Any] = check(response).json()
    return answer
