"""The methods of both clients on operating points, as coroutines."""

from collections.abc import Mapping
from typing import Any

from howsure.client.operating_points import OperatingPoint, OperatingPointPreview
from howsure.client.request import Request, address_of, json_request
from howsure.client.resources import Reference, reference_of
from howsure.client.transport import Sender

# Those of the service and of its page.
DELTA = 0.05
NAME = "automatic"


class OperatingPointMethods:
    """Methods that preview, activate, withdraw and list operating points."""

    sender: Sender

    async def preview_operating_point(
        self,
        calibration: Reference,
        *,
        max_risk: float | None = None,
        coverage: float | None = None,
        threshold: float | None = None,
        delta: float = DELTA,
        volume: int | None = None,
    ) -> OperatingPointPreview:
        """Return the threshold of a choice and its effect; nothing is stored.

        Parameters
        ----------
        max_risk
            Accept as many answers as keep this error rate, in (0, 1), with confidence
            ``1 - delta``.
        coverage
            Instead: accept at least this share of the calibration set, in (0, 1].
        threshold
            Instead: accept answers up to this uncertainty of Top-1, of pairs from this score on.
        volume
            Return the expected counts for this number of answers, too.

        Raises
        ------
        ValueError
            If not exactly one of ``max_risk``, ``coverage`` and ``threshold`` is given.
        HowsureError
            If the calibration has not succeeded or has no Top-1 table, or it was imported, which
            allows only a ``threshold``.
        """
        asked = _choice(max_risk=max_risk, coverage=coverage, threshold=threshold)
        address = address_of(reference_of(calibration), "operating-points", "preview")
        request = Request("GET", address, {**asked, "delta": delta, "volume": volume})
        return OperatingPointPreview.of((await self.sender.send(request)).json())

    async def activate_operating_point(
        self,
        calibration: Reference,
        *,
        author: str,
        reason: str,
        name: str = NAME,
        max_risk: float | None = None,
        coverage: float | None = None,
        threshold: float | None = None,
        delta: float = DELTA,
    ) -> OperatingPoint:
        """Activate a threshold: from now on ``abstain`` in answers says what exceeds it.

        Parameters
        ----------
        author, reason
            Who decides, and why, each on one line.
        name
            Its name in ``abstain``.
        max_risk, coverage, threshold, delta
            The choice, as in `preview_operating_point`.

        Raises
        ------
        ValueError
            If not exactly one of ``max_risk``, ``coverage`` and ``threshold`` is given.
        HowsureError
            As in `preview_operating_point`, and if no threshold meets the error rate.
        """
        asked = _choice(max_risk=max_risk, coverage=coverage, threshold=threshold)
        signed = {"name": name, "author": author, "reason": reason}
        address = address_of(reference_of(calibration), "operating-points")
        return await self._decide(address, {**asked, "delta": delta, **signed})

    async def withdraw_operating_point(
        self, calibration: Reference, *, author: str, reason: str
    ) -> OperatingPoint:
        """Deactivate the operating point, and return this decision; the history keeps it.

        Raises
        ------
        HowsureError
            If no operating point is active.
        """
        address = address_of(reference_of(calibration), "operating-points", "withdraw")
        return await self._decide(address, {"author": author, "reason": reason})

    async def operating_points(self, calibration: Reference) -> list[OperatingPoint]:
        """Return all decisions about a calibration, newest first; only the first can be active."""
        address = address_of(reference_of(calibration), "operating-points")
        return [
            OperatingPoint.of(point)
            for point in await self.sender.listed(address, "operating_points")
        ]

    async def _decide(self, address: str, body: Mapping[str, Any]) -> OperatingPoint:
        request = json_request(address, body, headers={}, repeatable=False)
        return OperatingPoint.of((await self.sender.send(request)).json())


def _choice(**given: float | None) -> dict[str, float]:
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) != 1:
        raise ValueError(
            f"expected exactly one of max_risk, coverage and threshold, got {len(found)}"
        )
    return found
