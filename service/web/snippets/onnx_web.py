"""The calibrated file in a browser, or under Node, by ONNX Runtime Web."""

import json
from urllib.parse import quote

from service.operations.integration import RowInput
from service.web.snippets.snippet import ZEROS, Asking, Snippet, bearer, command, quoted

ARRAYS = {
    "float32": "Float32Array",
    "float64": "Float64Array",
    "float16": "Uint16Array",
    "int64": "BigInt64Array",
    "int32": "Int32Array",
    "int16": "Int16Array",
    "int8": "Int8Array",
    "uint64": "BigUint64Array",
    "uint32": "Uint32Array",
    "uint16": "Uint16Array",
    "uint8": "Uint8Array",
    "bool": "Uint8Array",
}
PROGRAM = """\
import * as ort from "onnxruntime-web";

const classes = {classes};
const session = await ort.InferenceSession.create({file}{options});
// What calibration added stands last; all have a prefix where the model had one of their names.
const known = session.outputNames.findLast((name) => name.endsWith("topk_class"));
const names = {names}.map((name) => known.slice(0, -"topk_class".length) + name);
const rows = {{
{rows}}};
const answer = await session.run(rows, names);
const [index, probability, lower, upper] = names.map((name) => answer[name].data);
for (const row of index.keys()) {{
  console.log(classes[index[row]], probability[row], lower[row], upper[row]);
}}
"""


def snippet(asking: Asking) -> Snippet | None:
    """Return a module that prints a line a row; None where there is no calibrated file."""
    found = asking.calibration
    if found.not_exported is not None:
        return None
    k = found.events[0]
    text = PROGRAM.format(
        classes=json.dumps(list(found.classes)),
        file=json.dumps(_file_name(asking)),
        options=_companions(asking),
        names=json.dumps(["class", *(f"top{k}_{p}" for p in ("probability", "lower", "upper"))]),
        rows="".join(_row(one, found.batch) for one in found.inputs),
    )
    made = ", made of pictures as the service makes them" if found.takes_pictures else ""
    note = f"A module of a page, or of Node, with the file beside it. {ZEROS}{made}."
    title = "Browser or Node, without the service"
    return Snippet("browser", title, "javascript", text, note, setup=_files(asking))


def _files(asking: Asking) -> str:
    """Return the commands that fetch what the module needs."""
    found = asking.calibration
    address = f"{asking.origin}/calibrations/{found.id}"
    fetched = {_file_name(asking): f"{address}/model.onnx"}
    fetched |= {name: f"{address}/model_data/{quote(name)}" for name in found.companions}
    lines = [
        command("curl -s", quoted(url), *bearer(asking), "-o", quoted(file))
        for file, url in fetched.items()
    ]
    return "\n".join([*lines, "npm install onnxruntime-web"])


def _file_name(asking: Asking) -> str:
    """Return what the file is called."""
    return f"{asking.calibration.name}-{asking.calibration.version}.onnx"


def _row(one: RowInput, batch: int) -> str:
    size = batch * one.count
    tensor = f"new ort.Tensor({json.dumps(one.dtype)}, new {ARRAYS[one.dtype]}({size}), "
    return f"  {json.dumps(one.name)}: {tensor}{[batch, *one.sizes]}),\n"


def _companions(asking: Asking) -> str:
    if not asking.calibration.companions:
        return ""
    data = [{"path": name, "data": name} for name in asking.calibration.companions]
    return f", {{ externalData: {json.dumps(data)} }}"
