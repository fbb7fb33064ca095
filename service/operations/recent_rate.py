"""How fast a job goes at present."""

from collections import deque

WINDOW_SECONDS = 30.0
STEP_SECONDS = 0.25
# Over less time one batch would decide.
LEAST_SECONDS = 0.5


class RecentRate:
    """The rate of one attempt, within the stage that it is at, over the last half minute.

    What an attempt finds done already does not count: the rate is that of this attempt.
    """

    def __init__(self) -> None:
        self._stage: str | None = None
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, stage: str, done: int, moment: float) -> float | None:
        """Take note of how far the job is, by a monotonic clock, and return its rate a second.

        None until the stage has gone on for a moment.
        """
        if stage != self._stage or done < self._seen[-1][1]:
            self._stage = stage
            self._seen.clear()
        if not self._seen or moment - self._seen[-1][0] >= STEP_SECONDS:
            self._seen.append((moment, done))
        while len(self._seen) > 1 and self._seen[1][0] <= moment - WINDOW_SECONDS:
            self._seen.popleft()
        began, before = self._seen[0]
        passed = moment - began
        return None if passed < LEAST_SECONDS else (done - before) / passed
