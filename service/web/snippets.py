"""Example programs that use a calibration; each is a template in ``templates/snippets``."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.child.requests.predict_request import SCORES
from service.web.integration import Integration, RowInput

MAX_INLINE = 100  # numbers of a row; the snippet makes longer rows
KEY = "HOWSURE_API_KEY"
ZEROS = "Replace the zeros by your rows"
# The protocol has no JSON for these types. A wider type that the model can hold works as well.
WIDER = {"FP16": "FP32"}
# The typed arrays of JavaScript that are not called as their type is.
TYPED_ARRAYS = {"float16": "Uint16", "int64": "BigInt64", "uint64": "BigUint64", "bool": "Uint8"}


@dataclass(frozen=True)
class Snippet:
    """A program as text.

    Attributes
    ----------
    name : str
        The anchor of the snippet in the page.
    title : str
    language : str
        ``sh``, ``python`` or ``javascript``.
    text : str
    note : str
        What the reader replaces.
    setup : str
        Shell commands to run once before.
    """

    name: str
    title: str
    language: str
    text: str
    note: str
    setup: str = ""


# Howsure is not on a package index: the wheel is built in a checkout, see docs/install.md.
CLIENT = f"pip install howsure-{version('howsure')}-py3-none-any.whl"


def snippets_of(found: Integration, origin: str, *, keyed: bool) -> Sequence[Snippet]:
    """Return the snippets of a calibration.

    ``origin`` is the address at which the browser reached the service. ``keyed`` tells whether
    an API key is needed.
    """
    names = _names(found, origin) | {"keyed": keyed}

    def text(template: str) -> str:
        return TEMPLATES.get_template(f"{template}.jinja").render(names)

    note = f"{ZEROS}, as many as you like."
    if found.takes_pictures:
        note = "Send several pictures as parts of a form or in an archive."
    rows = "Paths or bytes of JPEG, PNG or WebP" if found.takes_pictures else ZEROS
    oip = "Open Inference Protocol"
    spoken = f"Version 2 of the protocol, which Triton and KServe also use. {ZEROS}."
    triton = "pip install 'tritonclient[http]' numpy"
    shown = [
        Snippet("curl", "curl", "sh", text("curl.sh"), note),
        Snippet("python", "Python", "python", text("python.py"), f"{rows}.", CLIENT),
        Snippet("oip", f"{oip}, curl", "sh", text("oip.sh"), spoken),
        Snippet("triton", f"{oip}, Python", "python", text("triton.py"), f"{ZEROS}.", triton),
    ]
    if found.not_exported is None:
        made = ", prepared from pictures like in the service" if found.takes_pictures else ""
        note = f"A module for a page or Node, in the folder of the file. {ZEROS}{made}."
        title = "Browser or Node, without the service"
        program, setup = text("browser.mjs"), text("browser_setup.sh").rstrip("\n")
        shown.append(Snippet("browser", title, "javascript", program, note, setup))
    return shown


def _names(found: Integration, origin: str) -> dict[str, Any]:
    """Return the names that the templates use."""
    supplied = [RowInput(f"uncertainty_{name}", "float32", "FP32", ()) for name in found.supplied]
    inputs = [*found.inputs, *supplied]
    k = found.events[0]
    # Pairs have no class.
    outputs = [] if found.kind == SCORES else ["class"]
    outputs += [*(f"top{k}_{part}" for part in ("probability", "lower", "upper"))]
    version = f"/versions/{found.version}" if found.is_pinned else ""
    file, address = f"{found.name}-{found.version}.onnx", f"{origin}/calibrations/{found.id}"
    is_only = found.kind == "inputs" and len(found.inputs) == 1  # its name may be no identifier
    return {
        "found": found,
        "origin": origin,
        "host": urlsplit(origin).netloc,
        "is_https": urlsplit(origin).scheme == "https",
        "key": KEY,
        "k": k,
        "is_short": sum(one.count for one in found.inputs) <= MAX_INLINE,
        "by_address": f"{origin}/predict?calibration={quote(found.reference, safe='@')}",
        "body": _body(found),
        "arrays": [
            ("inputs" if is_only and one is found.inputs[0] else one.name, one.sizes, one.dtype)
            for one in inputs
        ],
        "is_eye": lambda sizes: found.kind != "inputs" and len(sizes) > 0,
        "oip_address": f"{origin}/v2/models/{quote(found.name, safe='')}{version}/infer",
        "oip_inputs": inputs,
        "tensors": [_tensor(one) for one in inputs],
        "outputs": [{"name": name} for name in outputs],
        "output_names": outputs,
        "is_score": is_score,
        "file": file,
        "files": [
            (file, f"{address}/model.onnx"),
            *((name, f"{address}/model_data/{quote(name)}") for name in found.companions),
        ],
        "typed_array": lambda dtype: f"{TYPED_ARRAYS.get(dtype, dtype.capitalize())}Array",
    }


def _body(found: Integration) -> dict[str, Any]:
    """Return the JSON body of ``POST /predict`` for one row."""
    rows = {one.name: np.reshape(example(one), (1, *one.sizes)).tolist() for one in found.inputs}
    sent: Any = next(iter(rows.values())) if len(rows) == 1 else rows
    if found.columns:
        numbers = [number for one in found.inputs for number in example(one)]
        sent = [dict(zip(found.columns, numbers, strict=True))]
    body = {"calibration": found.reference, found.kind: sent}
    if found.supplied:
        body["supplied"] = {name: [0] for name in found.supplied}
    return body


def _tensor(one: RowInput) -> dict[str, Any]:
    datatype = WIDER.get(one.datatype, one.datatype)
    return {
        "name": one.name,
        "datatype": datatype,
        "shape": [1, *one.sizes],
        "data": example(one),
    }


def is_score(one: RowInput) -> bool:
    """Tell whether the first number of a row is 1: probabilities must sum to 1."""
    return one.name in ("logits", "probabilities") and len(one.sizes) == 1


def example(one: RowInput) -> list[int]:
    """Return the numbers of one row: zeros, except the first number of a score."""
    return [int(is_score(one)), *[0] * (one.count - 1)]


def python_literal(text: str) -> str:
    """Return a Python literal in double quotes if that needs no escapes."""
    shown = repr(text)
    is_plain = shown.startswith("'") and '"' not in shown
    return f'"{shown[1:-1]}"' if is_plain else shown


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates" / "snippets"),
    autoescape=False,  # noqa: S701 -- programs, not HTML; the page escapes them
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {"sh": shlex.quote, "py": python_literal, "repr": repr, "json": json.dumps}
