"""Examples of the OpenAPI document: a request and a response for every route that has a body."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "bodies"
# A body may have several media types. The example belongs to the first of these.
SHOWN = ("application/json", "multipart/form-data", "text/event-stream")


def add_examples(paths: dict[str, Any]) -> None:
    """Add the examples of ``bodies/operations.json`` to the operations of a document.

    ``request`` is the example of the body, ``answer`` that of each successful response, and a
    status that of one response. That of a job is a finished one.
    """
    for name, examples in _read("operations").items():
        method, path = name.split()
        operation = paths[path][method]
        if "request" in examples:
            _add(operation["requestBody"], examples["request"])
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                _add(response, examples.get(status, examples["answer"]))


def _add(body: dict[str, Any], example: object) -> None:
    content = body["content"]
    content[next(kind for kind in SHOWN if kind in content)]["example"] = example


def _read(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text, object_hook=_with_file)


def _with_file(found: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the content of the file that an object such as ``{"file": "usage"}`` names."""
    return _read(found["file"]) if found.keys() == {"file"} else found
