"""The answers of one run, from which each request that took part is given its own rows."""

from functools import cached_property

from service.bodies.oip.wanted import Wanted
from service.metrics import AnswerCounts
from service.operations.oip.answer import ArrayOutputs, InferAnswer, OutputTensors
from service.operations.predict import PredictionBatch, count_answers
from service.operations.prediction_arrays import Arrays, prediction_arrays
from service.operations.predictions import Predictions
from service.operations.predictions_npz import predictions_npz
from service.storage.references import CalibrationRef


class AnsweredRows:
    """Rows of any number of requests of one calibration, in whichever form each asks for.

    A form is made once for all rows, when the first request asks for it.
    """

    def __init__(self, batch: PredictionBatch) -> None:
        self._batch = batch
        self.n_rows = len(batch.classes)

    @property
    def ref(self) -> CalibrationRef:
        """Which calibration answered."""
        return self._batch.calibration.ref

    def json(self, start: int, stop: int) -> bytes:
        """Return the answer of ``POST /predict`` for the rows from ``start`` to before ``stop``."""
        return self._predictions.encode_answer(start, stop)

    def npz(self, start: int, stop: int) -> bytes:
        """Return the same as an .npz archive."""
        return predictions_npz({name: array[start:stop] for name, array in self._arrays.items()})

    def oip(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the same as tensors of the Open Inference Protocol.

        Raises
        ------
        InvalidInput
            If an output is asked for that there is not.
        """
        return self._tensors.encode_answer(start, stop, wanted)

    def count(self, counts: AnswerCounts, start: int, stop: int) -> None:
        """Count the rows from ``start`` to before ``stop`` by where they fell."""
        count_answers(counts, self._batch, slice(start, stop))

    @cached_property
    def _predictions(self) -> Predictions:
        return Predictions.of(self._batch)

    @cached_property
    def _arrays(self) -> Arrays:
        return prediction_arrays(self._batch)

    @cached_property
    def _tensors(self) -> OutputTensors:
        return OutputTensors(self.ref, ArrayOutputs(self._arrays))
