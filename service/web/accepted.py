"""Whether who asks is a person with a browser, by what is accepted."""

from starlette.types import Scope

HTML = "text/html"
_PROGRAMS = ("application/json", "application/problem+json")


def prefers_html(scope: Scope) -> bool:
    """Tell whether pages are asked for by name, and nothing that programs read before them.

    What takes anything, as `curl` says, is no browser.
    """
    sent = b",".join(value for name, value in scope["headers"] if name == b"accept")
    qualities: dict[str, float] = {}
    for entry in sent.decode("latin-1").split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        qualities[kind] = _quality(parameters)
    html = qualities.get(HTML, 0.0)
    return html > 0 and all(qualities.get(kind, 0.0) <= html for kind in _PROGRAMS)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0
