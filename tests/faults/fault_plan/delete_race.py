"""Calibrations are deleted while others request predictions from them."""

import itertools
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from runner_models import linear, rows, weights
from running_service import npz

from fault_plan.checker import check_files
from fault_plan.figures import Figures
from fault_plan.site import Site
from fault_plan.traffic import ANSWER_PAUSE_SECONDS, Traffic
from fault_plan.uploads import Upload

NAME = "flip"
PREDICTORS = 3
STOCK = 3
# Odd, so that both kinds are deleted.
UPLOADED_EVERY = 25
ROWS = rows(4, seed=9)
CONFIG = {"bins": 2, "folds": 2, "measures": ["neg_log_pmax"], "top_k": [1]}


def delete_race(folder: Path, *, times: int = 2000, seed: int = 0) -> Figures:
    """Delete ``times`` calibrations, of two kinds in turn, each as soon as it is used."""
    figures, generator = Figures("delete-race", seed), random.Random(seed)
    site = Site(folder)
    with site.serving() as client:
        race = _Race(client, figures)
        for _ in range(STOCK):
            race.create(client)
        with Traffic(site, figures, [race] * PREDICTORS):
            for _ in range(times):
                race.wait_until_asked()
                time.sleep(generator.uniform(0, 0.01))
                race.delete_one(client, generator)
                race.create(client)
                figures.fired += 1
        race.compare_answers()
    check_files(site, figures)
    return figures


class _Race:
    """The existing calibrations, the right answers of each kind, and the received ones.

    One calibration of each kind is never deleted. Most deleted ones are its refits, which are made
    quickly and share its files; some are new uploads.
    """

    def __init__(self, client: httpx.Client, figures: Figures) -> None:
        self._figures = figures
        self._uploads = [_upload("left", 0), _upload("right", 1)]
        self._kinds: dict[str, int] = {}
        self._live: list[dict[str, Any]] = []
        self._deleted: list[str] = []
        self._answers: list[tuple[str, list[dict]]] = []
        self._lock = threading.Lock()
        self._asked = threading.Semaphore(0)
        self._turn, self._created = itertools.count(), itertools.count()
        self._stay = [
            self._made(upload.send(client, NAME, wait=60), kind)
            for kind, upload in enumerate(self._uploads)
        ]
        self._expected = [_ask(client, made["id"]).json()["predictions"] for made in self._stay]
        if self._expected[0] == self._expected[1]:
            figures.violations.append("both kinds answer alike: a mix would not show")

    def create(self, client: httpx.Client) -> None:
        """Add the next version of the name, of the other kind than the last."""
        number = next(self._created)
        kind = number % len(self._uploads)
        if number % UPLOADED_EVERY == 0:
            answer = self._uploads[kind].send(client, NAME, wait=60)
        else:
            path = f"/calibrations/{self._stay[kind]['id']}/refit"
            answer = client.post(path, json={"bins": 2}, headers={"Prefer": "wait=60"})
        made = self._made(answer, kind)
        with self._lock:
            self._live.append(made)

    def delete_one(self, client: httpx.Client, generator: random.Random) -> None:
        """Delete one of them, the newest as often as any other."""
        with self._lock:
            place = generator.choice([len(self._live) - 1, generator.randrange(len(self._live))])
            gone = self._live.pop(place)
        answer = client.delete(f"/calibrations/{gone['id']}")
        if answer.status_code != httpx.codes.NO_CONTENT:
            self._figures.violate(f"DELETE was answered {answer.status_code}: {answer.text}")
        with self._lock:
            self._deleted.append(gone["id"])

    def compare_answers(self) -> None:
        """Compare the received answers with those of the calibration's kind.

        Not sooner: a new calibration may answer before its client knows that it exists.
        """
        for of, predictions in self._answers:
            if predictions != self._expected[self._kinds[of]]:
                self._figures.violate(f"{of} answered what is not its own")

    def wait_until_asked(self) -> None:
        """Wait for a few more answers."""
        while self._asked.acquire(blocking=False):
            pass
        for _ in range(PREDICTORS):
            self._asked.acquire(timeout=30)

    def __call__(self, client: httpx.Client) -> None:
        """Request by name, version or id, in turn; by id also after the deletion."""
        with self._lock:
            turn = next(self._turn)
            live = self._live[turn % len(self._live)]
            gone = list(self._deleted)
        by_id = gone[-1] if gone and turn % 2 else live["id"]
        reference = [NAME, f"{NAME}@{live['version']}", by_id, by_id][turn % 4]
        answer = _ask(client, reference)
        how = "by name" if reference == NAME else "by version or id"
        with self._lock:
            self._figures.struck[f"{answer.status_code} {how}"] += 1
        if answer.status_code == httpx.codes.OK:
            of = answer.json()["calibration"]["id"]
            if of in gone:
                self._figures.violate(
                    f"{reference}: {of} answered after its deletion was confirmed"
                )
            self._answers.append((of, answer.json()["predictions"]))
        elif answer.status_code != httpx.codes.NOT_FOUND:
            self._figures.violate(f"{reference}: {answer.status_code} {answer.text}")
        self._asked.release()
        time.sleep(ANSWER_PAUSE_SECONDS)

    def _made(self, answer: httpx.Response, kind: int) -> dict[str, Any]:
        made = answer.json()
        self._figures.jobs[made.get("status", answer.text)] += 1
        self._kinds[made["id"]] = kind
        return made


def _ask(client: httpx.Client, reference: str) -> httpx.Response:
    return client.post("/predict", json={"calibration": reference, "inputs": ROWS.tolist()})


def _upload(kind: str, seed: int) -> Upload:
    matrix, inputs = weights(4, seed=seed), rows(60, seed=3)
    labels = np.argmax(inputs @ matrix, axis=1)
    labels[:: 3 + seed] = 0
    model = linear(matrix).SerializeToString()
    return Upload(kind, npz(inputs=inputs, labels=labels), model, config=CONFIG)
