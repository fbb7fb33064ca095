"""The answer to one sample, as the page shows it."""

import base64
import json
from typing import Any

from service.bodies import JSON
from service.operations.draw_sample import DrawnSample
from service.operations.sample_picture import sample_picture
from service.web.handed_on import Sent
from service.web.pointed import Pointed

SIDE = 224
MOST_SHOWN = 20_000
_TOP = "top"


def shown_answer(
    answer: dict[str, Any],
    bins: dict[str, Any] | None,
    sent: Sent | None,
    drawn: DrawnSample | None,
) -> dict[str, Any]:
    """Return what the template names of an answer of ``POST /predict``, which is of its first row.

    Pointers into the answer begin with ``/answer``, those into the report with ``/report``.
    """
    first = answer["predictions"][0]
    picture = None if drawn is None else sample_picture(drawn.sample, most=SIDE)
    return {
        "shown": Pointed({"answer": answer, "report": bins}),
        "first": first,
        "rows": len(answer["predictions"]),
        "events": [_event(name, first, bins) for name in first if name.startswith(_TOP)],
        "drawn": drawn,
        "picture": None if picture is None else base64.b64encode(picture).decode(),
        "json": json.dumps(answer, indent=2, ensure_ascii=False),
        "request": _request(sent),
        "media_type": None if sent is None else sent.content_type,
    }


def _event(name: str, first: dict[str, Any], bins: dict[str, Any] | None) -> dict[str, Any]:
    """Return where the numbers of an event are, in the answer and in the report."""
    k, found = int(name.removeprefix(_TOP)), first[name]
    bin_at = ("report", "events", str(k), "measures", found["measure"], "bins", found["bin"])
    return {
        "k": k,
        "at": ("answer", "predictions", 0, name),
        "measure": found["measure"],
        "bin_at": bin_at if bins is not None else None,
    }


def _request(sent: Sent | None) -> str | None:
    """Return a request that people can read; None of a file, or of one that is long."""
    if sent is None or sent.content_type != JSON or len(sent.body) > MOST_SHOWN:
        return None
    return sent.body.decode()
