"""Models that end their processes again and again are left alone for a while."""

from collections import deque

from service.errors import DeadlineExceeded, OnnxModelCrashed, OnnxModelQuarantined, ServiceError

MOST_ENDS = 3
WITHIN_SECONDS = 180.0
COOL_DOWN_SECONDS = 120.0


class Ends:
    """When a model's processes died, answered nonsense or had to be killed for their time."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST_ENDS)

    def ended(self, error: ServiceError, now: float) -> OnnxModelQuarantined | None:
        """Note an end; return why the model is to be left alone, if it is."""
        if not isinstance(error, OnnxModelCrashed | DeadlineExceeded):
            return None
        if isinstance(error, OnnxModelCrashed) and error.is_from_outside:
            return None
        self._times.append(now)
        if len(self._times) < MOST_ENDS or now - self._times[0] > WITHIN_SECONDS:
            return None
        self._times.clear()
        return OnnxModelQuarantined(
            f"This ONNX model is left alone for a while: its process ended {MOST_ENDS} times "
            f"within {WITHIN_SECONDS:g} s. The last time: {error.message}",
            retry_after=int(COOL_DOWN_SECONDS),
        )
