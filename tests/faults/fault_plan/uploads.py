"""Small models and sets to upload, and the ledger of what was sent and answered."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from bins_documents import digits_set
from report_scenarios import outputs
from running_service import calibrate, digits, npz

# Few measures and folds, so that a job spends as long on its rows as on its tables.
CONFIG = {"bins": 10, "folds": 2, "measures": ["neg_log_pmax", "entropy"]}


@dataclass(frozen=True)
class Upload:
    """The parts of POST /calibrate, except the name."""

    kind: str
    calibration: bytes
    model: bytes | None = None
    evaluation: bytes | None = None
    config: dict[str, Any] = field(default_factory=lambda: CONFIG)

    def send(
        self, client: httpx.Client, name: str, *, wait: int = 0, key: str = ""
    ) -> httpx.Response:
        """Send it under a name; with a key it may be sent again."""
        parts = {"model": self.model, "calibration": self.calibration}
        parts |= {
            "evaluation": self.evaluation,
            "config": json.dumps({"name": name, **self.config}),
        }
        headers = {"Idempotency-Key": key} if key else {}
        return calibrate(client, **parts, wait=wait, headers=headers)


@dataclass
class Entry:
    """One upload, sent once or again with the same key, and its last response.

    ``status`` is None if no response arrived. ``replayed`` says that the service returned an
    earlier calibration.
    """

    upload: Upload
    name: str
    key: str
    status: int | None = None
    found: dict[str, Any] = field(default_factory=dict)
    replayed: bool = False

    @property
    def is_accepted(self) -> bool:
        return self.status in (201, 202)

    def send(self, client: httpx.Client) -> httpx.Response | None:
        """Send the upload, for the first time or again, and note the outcome."""
        try:
            answer = self.upload.send(client, self.name, key=self.key)
        except httpx.TransportError:
            self.status = None
            return None
        self.status, self.found = answer.status_code, answer.json()
        self.replayed = "idempotency-replayed" in answer.headers
        return answer


class Ledger:
    """All requests, each of them noted before it is sent, outside the service."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._lock = threading.Lock()

    def note(self, upload: Upload) -> Entry:
        """Note an upload under a name of its own."""
        with self._lock:
            number = len(self.entries)
            entry = Entry(upload, f"{upload.kind}-{number}", f"upload-{number}")
            self.entries.append(entry)
        return entry


def mixed_uploads(copies: int = 20) -> Sequence[Upload]:
    """Return uploads with a model, with a second set, and of outputs alone.

    No copies: only one with a second set, and one of outputs alone.
    """
    model = digits("model.onnx")
    return [
        *([Upload("inputs", _tiled(copies), model)] if copies else []),
        Upload("evaluated", _tiled(min(copies, 4) or 1), model, digits("evaluation.npz")),
        Upload("logits", npz(**outputs(3000, seed=0, n_classes=10))),
    ]


def _tiled(copies: int) -> bytes:
    """Return the calibration set of the digits, several times over."""
    arrays = digits_set("calibration")
    return npz(**{name: np.concatenate([array] * copies) for name, array in arrays.items()})
