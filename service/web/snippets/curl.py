"""``POST /predict`` by curl."""

import json
from urllib.parse import quote

from service.web.snippets.snippet import ZEROS, Asking, Snippet, bearer, command, nested, quoted

NPZ = "application/x-npz"


def snippet(asking: Asking) -> Snippet:
    """Return it: rows as JSON where they are short, else as a file."""
    if asking.calibration.takes_pictures:
        text, note = _picture(asking), "Several pictures go as parts of a form, or in an archive."
    elif asking.is_short:
        text, note = _json(asking), f"{ZEROS}, as many as you like."
    else:
        text, note = _file(asking), f"{ZEROS}, as many as you like."
    return Snippet("curl", "curl", "sh", text, note)


def _json(asking: Asking) -> str:
    found = asking.calibration
    rows = {one.name: nested(one) for one in found.inputs}
    body: dict[str, object] = {"calibration": found.reference}
    body |= _body_rows(found.kind, rows)
    if found.supplied:
        body["supplied"] = {name: [0] for name in found.supplied}
    return command(
        "curl -s",
        quoted(f"{asking.origin}/predict"),
        *("-H", quoted("Content-Type: application/json")),
        *bearer(asking),
        *("-d", quoted(json.dumps(body))),
    )


def _body_rows(kind: str, rows: dict[str, object]) -> dict[str, object]:
    only = next(iter(rows.values()))
    return {kind: only if len(rows) == 1 else rows}


def _picture(asking: Asking) -> str:
    return _sent(asking, "image/jpeg", "picture.jpg")


def _file(asking: Asking) -> str:
    inputs = asking.calibration.inputs
    names = ["inputs"] if _is_only_input(asking) else [one.name for one in inputs]
    arrays = {name: (one.sizes, one.dtype) for name, one in zip(names, inputs, strict=True)}
    arrays |= {f"uncertainty_{name}": ((), "float32") for name in asking.calibration.supplied}
    made = ", ".join(
        f"{name!r}: {_array(asking, (1, *sizes), dtype)}" for name, (sizes, dtype) in arrays.items()
    )
    code = f"import numpy; numpy.savez('rows.npz', **{{{made}}})"
    return f"python3 -c {quoted(code)}\n{_sent(asking, NPZ, 'rows.npz')}"


def _is_only_input(asking: Asking) -> bool:
    """Tell whether it may be called so: what a model calls it may be no name of an argument."""
    return asking.calibration.kind == "inputs" and len(asking.calibration.inputs) == 1


def _array(asking: Asking, shape: tuple[int, ...], dtype: str) -> str:
    if asking.calibration.kind != "inputs" and len(shape) > 1:
        return f"numpy.eye(1, {shape[1]}, dtype={dtype!r})"
    return f"numpy.zeros({shape}, {dtype!r})"


def _sent(asking: Asking, kind: str, file: str) -> str:
    address = f"{asking.origin}/predict?calibration={quote(asking.calibration.reference, safe='@')}"
    return command(
        "curl -s",
        quoted(address),
        *("-H", quoted(f"Content-Type: {kind}")),
        *bearer(asking),
        *("--data-binary", quoted(f"@{file}")),
    )
