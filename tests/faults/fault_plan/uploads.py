"""Small models and sets to upload, whose jobs differ and end within a second or two."""

import io
import json
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from running_service import digits, npz

from fault_plan.ledger import Entry, Ledger

# Few measures and folds, so that a job spends as long on its rows as on its tables.
CONFIG = {"bins": 10, "folds": 2, "measures": ["neg_log_pmax", "entropy"]}


@dataclass(frozen=True)
class Upload:
    """The parts of POST /calibrate, except the name."""

    kind: str
    calibration: bytes
    model: bytes | None = None
    evaluation: bytes | None = None
    config: dict[str, Any] = field(default_factory=dict)

    def send(
        self, client: httpx.Client, name: str, *, wait: int = 0, key: str | None = None
    ) -> httpx.Response:
        """Send it under a name; with a key it may be sent again."""
        parts: list[tuple[str, Any]] = [("calibration", ("calibration.npz", self.calibration))]
        if self.model is not None:
            parts.append(("model", ("model.onnx", self.model)))
        if self.evaluation is not None:
            parts.append(("evaluation", ("evaluation.npz", self.evaluation)))
        parts.append(("config", (None, json.dumps({"name": name, **self.config}))))
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        headers |= {"Idempotency-Key": key} if key else {}
        return client.post("/calibrate", files=parts, headers=headers)

    def send_noted(
        self, client: httpx.Client, ledger: Ledger, name: str | None = None
    ) -> tuple[Entry, httpx.Response | None]:
        """Send it and record the outcome in the ledger, including no response."""
        entry = ledger.sent(self.kind, name)
        return entry, self.send_as(entry, client, ledger)

    def send_as(self, entry: Entry, client: httpx.Client, ledger: Ledger) -> httpx.Response | None:
        """Send the upload of an entry, for the first time or again."""
        try:
            answer = self.send(client, entry.name, key=entry.key)
        except httpx.TransportError as error:
            ledger.answered(entry, None, detail=repr(error))
            return None
        found = answer.json()
        ledger.answered(
            entry,
            answer.status_code,
            calibration=found.get("id"),
            version=found.get("version"),
            detail=found.get("detail"),
            replayed="idempotency-replayed" in answer.headers,
        )
        return answer


def mixed_uploads(copies: int = 20) -> list[Upload]:
    """Return uploads with a model, with a second set, and of outputs alone."""
    model, config = digits("model.onnx"), CONFIG
    large = _tiled("calibration.npz", copies)
    return [
        Upload("inputs", large, model, config=config),
        Upload("evaluated", _tiled("calibration.npz", 4), model, digits("evaluation.npz"), config),
        Upload("logits", outputs_set(3000), config=config),
    ]


def outputs_set(n_samples: int, *, n_classes: int = 10, seed: int = 0) -> bytes:
    """Return logits, right for most of the labels."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, n_classes, n_samples)
    logits = generator.normal(size=(n_samples, n_classes)).astype(np.float32)
    logits[np.arange(n_samples), labels] += 2.0
    return npz(logits=logits, labels=labels)


def _tiled(name: str, copies: int) -> bytes:
    found = np.load(io.BytesIO(digits(name)))
    return npz(
        inputs=np.tile(found["inputs"], (copies, 1)), labels=np.tile(found["labels"], copies)
    )
