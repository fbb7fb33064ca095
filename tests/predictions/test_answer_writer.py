"""Each request of a run gets the answers to its own rows."""

import asyncio
import json
import uuid

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.metrics.answers import AnswerCounts
from service.predictions.answer_writer import AnswerWriter
from service.predictions.oip_statistics import Statistics
from service.predictions.prediction_request import PredictionOptions, PredictionRequest
from service.predictions.served_calibration import ServedCalibration, ServedEvent
from service.runner.model_output import OutputMatrix
from service.runner.predict_requests import Answer
from service.storage.calibration_queries import CalibrationRef

N_CLASSES = 12
TERMS = PredictionOptions("application/json", None, "json", 60.0)


class Asked(PredictionRequest, eq=False, kw_only=True):
    told: list

    def done(self, answer):
        self.told.append([row["class"] for row in json.loads(answer.body)["predictions"]])

    def failed(self, error):
        self.told.append(error)


def calibration(name):
    table = BinTable(
        edges=[-np.inf, 0.5, np.inf],
        counts=[10, 10],
        hits=[9, 5],
        prior=BetaPrior(0.5, 1.0),
        probability=np.array([0.9, 0.5]),
        lower=np.array([0.8, 0.4]),
        upper=np.array([0.95, 0.6]),
        mean_uncertainty=[0.2, 0.8],
        requested_bins=2,
    )
    return ServedCalibration(
        ref=CalibrationRef(uuid.uuid4(), name, 1),
        model=None,
        class_names=[str(index) for index in range(N_CLASSES)],
        top_k=(1,),
        ood_threshold=None,
        accept_thresholds={},
        events=[ServedEvent(1, "entropy", "entropy", table)],
    )


def matrix(classes):
    words = np.zeros((len(classes), 5), np.float32)
    words[:, 0] = classes
    words[:, 1] = (np.array(classes) + 1) % N_CLASSES
    return OutputMatrix(words, 2, {"entropy": 4})


def asked(served):
    return Asked(
        asker=None,
        tenant_id=uuid.UUID(int=1),
        body=b"",
        arrived=0.0,
        options=TERMS,
        timeout=60.0,
        served=served,
        told=[],
    )


def answers_of(groups):
    """Return answers and the classes that each is owed: of each matrix some rows in a row."""
    found = []
    for served, classes, cuts in groups:
        rows = matrix(classes)
        for start, stop in cuts:
            answer = Answer(asked(served), rows, start, stop, None, {})
            found.append((answer, classes[start:stop]))
    return found


ONE, OTHER = calibration("one"), calibration("other")
MIXED = {
    "one matrix": [(ONE, [1, 2, 3], [(0, 1), (1, 3)])],
    "a joined request first": [(ONE, [7, 8], [(0, 2)]), (ONE, [1, 2, 3], [(0, 1), (1, 3)])],
    "a joined request last": [(ONE, [1, 2, 3], [(0, 1), (1, 3)]), (ONE, [7, 8], [(0, 2)])],
    "two calibrations": [(ONE, [4], [(0, 1)]), (OTHER, [5], [(0, 1)])],
    "rows that nobody waits for": [(ONE, [1, 2, 3], [(1, 2)])],
    "many rows": [(ONE, [7], [(0, 1)]), (ONE, list(range(12)) * 30, [(0, 300), (300, 360)])],
}


@pytest.mark.parametrize("groups", MIXED.values(), ids=MIXED)
def test_each_request_gets_its_own_rows(groups) -> None:
    async def body():
        counts = AnswerCounts()
        writer = AnswerWriter(counts, Statistics(), fail=lambda asked, error: asked.fail(error))
        owed = answers_of(groups)
        writer.write([answer for answer, _ in owed])
        async with asyncio.timeout(10):
            while not all(answer.request.told for answer, _ in owed):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        writer.close()
        assert [answer.request.told for answer, _ in owed] == [[classes] for _, classes in owed]
        rows = next(family for family in counts.collect() if family.name == "howsure_predict_rows")
        assert rows.samples[0].value == sum(len(classes) for _, classes in owed)

    asyncio.run(body())
