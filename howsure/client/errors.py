"""Exceptions of the client.

HowsureError
├── ServiceUnreachable   no response came, despite retries
└── JobFailed            a job failed or was cancelled during the wait
    ├── CalibrationFailed
    └── EvaluationFailed
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from howsure.client.request import Answer

# The row in a location, `inputs.x[7][0]` or `inputs[7].age`: the first index; of a table's column,
# whose name may have brackets, `body.x[2][7]`, the last one.
_ROW = re.compile(r"^(body\..*\[|[^\[]*\[)(\d+)\]")
OUTCOME_UNKNOWN = "urn:howsure:problem:outcome-unknown"


class HowsureError(Exception):
    """The service refused the request, or failed.

    Attributes
    ----------
    status
        HTTP status, or None if no response arrived.
    title, detail
        The kind of the failure, and a sentence about it.
    type
        Stable name for programs, such as ``urn:howsure:problem:invalid-dataset``.
    errors
        The broken rules: ``location`` (part, array, row or field) and ``message``.
    """

    def __init__(
        self,
        title: str,
        detail: str,
        *,
        status: int | None = None,
        type_: str = "about:blank",
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(f"{title}: {detail}")
        self.title = title
        self.detail = detail
        self.status = status
        self.type = type_
        self.errors = [dict(entry) for entry in errors]

    @classmethod
    def of_problem(cls, problem: Mapping[str, Any], *, status: int | None = None) -> Self:
        """Build the error from a problem (RFC 9457) of a response or a failed job."""
        found = problem.get("status", status)
        return cls(
            str(problem.get("title", "Failed")),
            str(problem.get("detail", "the service gave no reason")),
            status=found if isinstance(found, int) else status,
            type_=str(problem.get("type", "about:blank")),
            errors=[
                entry
                for entry in problem.get("errors") or ()
                if isinstance(entry, dict) and {"location", "message"} <= entry.keys()
            ],
        )

    def renumber_rows(self, first_row: int) -> None:
        """Add the number of the first row that was sent to the rows in locations."""
        for entry in self.errors:
            moved = _ROW.sub(lambda at: f"{at[1]}{int(at[2]) + first_row}]", entry["location"])
            self.detail = self.detail.replace(entry["location"], moved)
            entry["location"] = moved
        self.args = (f"{self.title}: {self.detail}",)


class ServiceUnreachable(HowsureError):
    """No response came; ``__cause__`` is the failure of the last attempt."""


class JobFailed(HowsureError):
    """A job failed or was cancelled during the wait.

    ``resource`` is the job as JSON of the service.
    """

    resource: Mapping[str, Any]

    @classmethod
    def of_resource(cls, resource: Mapping[str, Any]) -> Self:
        """Build the error from a job that failed or was cancelled."""
        cancelled = {"title": "Cancelled", "detail": "the job was cancelled", "status": None}
        error = cls.of_problem(resource.get("error") or cancelled)
        error.resource = resource
        return error


class CalibrationFailed(JobFailed):
    """A calibration failed or was cancelled."""


class EvaluationFailed(JobFailed):
    """An evaluation failed or was cancelled."""


def error_of(answer: Answer) -> HowsureError:
    """Return the exception for a response with status 400 or above."""
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "title" not in problem:
        detail = f"the service answered {answer.status} without a problem"
        return HowsureError("Unexpected answer", detail, status=answer.status)
    return HowsureError.of_problem(problem, status=answer.status)
