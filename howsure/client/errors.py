"""Exceptions of the client.

HowsureError
├── ServiceUnreachable   no answer came, however often it was asked
└── JobFailed            a job that was waited for has failed, or was cancelled
    ├── CalibrationFailed
    └── EvaluationFailed
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from howsure.client.request import Answer

OUTCOME_UNKNOWN = "urn:howsure:problem:outcome-unknown"


class HowsureError(Exception):
    """The service refused the request, or failed.

    Attributes
    ----------
    status
        Of the answer; None where none came.
    title, detail
        What it is, and what happened in a sentence.
    type
        The stable name of what it is, for programs: ``urn:howsure:problem:invalid-dataset``.
    errors
        Each broken rule: ``location`` (part, array, row or field) and ``message``.
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
        """Build it of a problem (RFC 9457), as answers and failed jobs hold one."""
        found = problem.get("status", status)
        return cls(
            str(problem.get("title", "Failed")),
            str(problem.get("detail", "nothing is said of why")),
            status=found if isinstance(found, int) else status,
            type_=str(problem.get("type", "about:blank")),
            errors=problem.get("errors") or (),
        )


class ServiceUnreachable(HowsureError):
    """No answer came; ``__cause__`` is the failure of the last attempt."""


class JobFailed(HowsureError):
    """A job that was waited for has failed, or was cancelled.

    ``resource`` is the job as the service tells it.
    """

    resource: Mapping[str, Any]

    @classmethod
    def of_resource(cls, resource: Mapping[str, Any]) -> Self:
        """Build it of a job that has ended otherwise than well."""
        cancelled = {"title": "Cancelled", "detail": "it was asked to stop", "status": None}
        error = cls.of_problem(resource.get("error") or cancelled)
        error.resource = resource
        return error


class CalibrationFailed(JobFailed):
    """A calibration has failed, or was cancelled."""


class EvaluationFailed(JobFailed):
    """An evaluation has failed, or was cancelled."""


def error_of(answer: Answer) -> HowsureError:
    """Return the exception for a response with status 400 or above."""
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "title" not in problem:
        detail = f"the service answered {answer.status} and no problem"
        return HowsureError("Unexpected answer", detail, status=answer.status)
    return HowsureError.of_problem(problem, status=answer.status)
