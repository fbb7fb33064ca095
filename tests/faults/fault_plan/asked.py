"""Predictions that go on through every fault, and are to be what they were before it."""

import io
import threading
import time
from collections import Counter

import httpx
import numpy as np
from running_service import digits

PAUSE_SECONDS = 0.01


class KnownAnswers:
    """Asks a calibration of the digits for some rows; the first answer is the right one."""

    def __init__(self, client: httpx.Client, reference: str) -> None:
        with np.load(io.BytesIO(digits("calibration.npz"))) as found:
            self._rows = found["inputs"][:4].tolist()
        self._reference = reference
        self._expected = self._post(client).json()["predictions"]
        self._lock = threading.Lock()
        self.statuses: Counter[str] = Counter()
        self.slowest = 0.0
        self.violations: list[str] = []

    def ask(self, client: httpx.Client) -> None:
        """Ask once, and note whatever is not the right answer."""
        began = time.monotonic()
        answer = self._post(client)
        took = time.monotonic() - began
        with self._lock:
            self.statuses[str(answer.status_code)] += 1
            self.slowest = max(self.slowest, took)
        if answer.status_code != httpx.codes.OK:
            self.violations.append(f"/predict was answered {answer.status_code}: {answer.text}")
        elif answer.json()["predictions"] != self._expected:
            self.violations.append(f"/predict answered otherwise than before: {answer.text}")
        time.sleep(PAUSE_SECONDS)

    def _post(self, client: httpx.Client) -> httpx.Response:
        body = {"calibration": self._reference, "inputs": self._rows}
        return client.post("/predict", json=body)
