"""Programs that ask one calibration, in the languages of who asks: a file and a line here each."""

from collections.abc import Sequence

from service.web.snippets import curl, oip, onnx_web, python
from service.web.snippets.snippet import Asking, Snippet

__all__ = ["SNIPPETS", "Asking", "Snippet", "snippets_of"]

SNIPPETS = (curl.snippet, python.snippet, oip.curl, oip.triton, onnx_web.snippet)


def snippets_of(asking: Asking) -> Sequence[Snippet]:
    """Return all that there are for a calibration."""
    return [made for make in SNIPPETS if (made := make(asking)) is not None]
