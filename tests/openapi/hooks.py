"""What schemathesis is told of this service: files that are sets, and which refusals are right.

A schema says what a request looks like. Whether a file is a calibration set, whether two keys of a
configuration go together or a cursor was ever given out, it cannot say; of the many requests that
keep to the schema the service has to refuse some. Each way in which it may stands here.
"""

import json
import re
import uuid
import zlib
from typing import Any

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.generation.meta import TestPhase as Phase
from schemathesis.openapi.checks import RejectedPositiveData
from schemathesis.transport.serialization import Binary

LOGITS = "label,logit_0,logit_1,logit_2\n" + "\n".join(
    f"{row % 3}," + ",".join(str(1 + row % 7 if column == row % 3 else 0) for column in range(3))
    for row in range(60)
)

# Operation, where the rule was broken, and why a schema cannot say so.
RIGHT_REFUSALS = [
    (
        "GET /(calibrations|audit)(/.*/(evaluations|operating-points))?",
        r"cursor",
        "a cursor is what a page gave, and nothing else",
    ),
    ("POST /calibrate", r"(calibration|evaluation)(_labels|\..*)?", "which files are sets, labels"),
    ("POST /calibrate", r"model|model_data", "which files are models"),
    ("POST /calibrate|.*/refit", r"config(\..*)?", "keys that do not go together, or with the set"),
    ("POST .*/evaluations", r"evaluation(_labels)?(\..*)?", "which files are sets, labels"),
    ("POST .*/evaluations", r"name", "printable, and not `…/events`"),
    ("GET .*/samples", r"k", "an event that the calibration has"),
    ("POST /calibrations/import", r"document(\..*)?", "numbers that contradict one another"),
    (".*/operating-points(/preview)?", r"body|query", "one of threshold, coverage, max_risk"),
    (".*/operating-points(/withdraw)?", r"author|reason", "printable, on one line"),
    ("POST /predict", r".*", "rows of another shape than the calibration's, or names of another"),
    ("GET /report", r"format|calibration", "several calibrations are compared in JSON alone"),
    (".*/infer", r".*", "tensors of another shape than the calibration's, or names of another"),
    (".*", r"Idempotency-Key", "a key that came with another request before"),
]
KEY = "Idempotency-Key"
UPLOADS = {
    "POST /calibrate": "calibration",
    "POST /calibrations/{calibration_id}/evaluations": "evaluation",
}
REAL_UPLOADS: set[str] = set()
# A client that gives no time gets none.
SHORTEST_TIMEOUT = 1.0


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Send a new key with each request, and a set that is one in every other upload."""
    label, body = case.operation.label, case.body
    # The document's example is one key, which one request alone may have.
    if (case.headers or {}).get(KEY, "").startswith('"'):
        case.headers[KEY] = f'"{uuid.uuid4()}"'
    part = UPLOADS.get(label)
    is_right = case.meta is not None and case.meta.generation.mode.is_positive
    # The cases of the coverage phase are each about one thing.
    if part is None or not is_right or case.meta.phase.name == Phase.COVERAGE:
        return
    if isinstance(body, dict) and zlib.crc32(repr(body).encode()) % 2:
        case.body = {part: Binary(LOGITS.encode())} | (
            {"name": body["name"]} if "name" in body else {}
        )
        REAL_UPLOADS.add(case.id)


@schemathesis.hook
def filter_failure(context: Any, failure: Failure, case: Any, response: Any) -> bool:
    """Tell whether a failure is one."""
    label = case.operation.label
    if response.status_code == 504:
        return float((case.headers or {}).get("Timeout", SHORTEST_TIMEOUT)) >= SHORTEST_TIMEOUT
    if case.id in REAL_UPLOADS:
        # A body that is put in place of another is judged as no string, and so as one to refuse.
        return not isinstance(failure, AcceptedNegativeData)
    if isinstance(failure, RejectedPositiveData):
        return not _is_right(label, json.loads(response.content))
    return True


def _is_right(label: str, problem: dict[str, Any]) -> bool:
    places = [found["location"] for found in problem.get("errors", [])]
    # The Open Inference Protocol has a sentence alone.
    places = places or [problem["error"].partition(":")[0]] if "error" in problem else places
    return places != [] and all(
        any(
            re.fullmatch(asked, label) and re.fullmatch(rule, place, re.DOTALL)
            for asked, rule, _ in RIGHT_REFUSALS
        )
        for place in places
    )
