"""The Open Inference Protocol: by curl, and by Triton's client."""

import json
from urllib.parse import quote, urlsplit

from service.operations.integration import RowInput
from service.web.snippets.snippet import (
    KEY,
    ZEROS,
    Asking,
    Snippet,
    bearer,
    command,
    example,
    is_score,
    python_text,
    quoted,
)

# The protocol has no JSON for them; wider numbers that the model's type can hold will do.
WIDER = {"FP16": "FP32"}
HOLE = "numbers of a row"


def curl(asking: Asking) -> Snippet:
    """Return a request in JSON; of long rows the body is made by the snippet."""
    url = f"{asking.origin}{_path(asking)}"
    sent = [
        "curl -s",
        quoted(url),
        *("-H", quoted("Content-Type: application/json")),
        *bearer(asking),
    ]
    if asking.is_short:
        body = {
            "inputs": [_tensor(one, example(one)) for one in _inputs(asking)],
            "outputs": [{"name": name} for name in _outputs(asking)],
        }
        text = command(*sent, "-d", quoted(json.dumps(body)))
    else:
        text = f"python3 -c {quoted(_made(asking))} |\n{command(*sent, '--data-binary', '@-')}"
    note = f"Version 2 of the protocol, as Triton and KServe speak it. {ZEROS}."
    return Snippet("oip", "Open Inference Protocol, curl", "sh", text, note)


def triton(asking: Asking) -> Snippet:
    """Return a program with Triton's own client."""
    found, origin = asking.calibration, urlsplit(asking.origin)
    options = ", ssl=True" if origin.scheme == "https" else ""
    asked = f", model_version={python_text(str(found.version))}" if found.is_pinned else ""
    if asking.keyed:
        asked += f', headers={{"Authorization": f"Bearer {{os.environ[{KEY!r}]}}"}}'
    inputs = "".join(f"    {_infer_input(one)},\n" for one in _inputs(asking))
    text = (
        f"{'import os' if asking.keyed else ''}\n\nimport numpy as np\n"
        "import tritonclient.http as triton\n\n"
        f"client = triton.InferenceServerClient({python_text(origin.netloc)}{options})\n"
        f"inputs = [\n{inputs}]\n"
        f"answer = client.infer({python_text(found.name)}, inputs{asked})\n"
        f"for name in {json.dumps(_outputs(asking))}:\n"
        "    print(name, answer.as_numpy(name))\n"
    ).lstrip("\n")
    setup = "pip install 'tritonclient[http]' numpy"
    title = "Open Inference Protocol, Python"
    return Snippet("triton", title, "python", text, f"{ZEROS}.", setup=setup)


def _path(asking: Asking) -> str:
    found = asking.calibration
    version = f"/versions/{found.version}" if found.is_pinned else ""
    return f"/v2/models/{quote(found.name, safe='')}{version}/infer"


def _inputs(asking: Asking) -> list[RowInput]:
    supplied = [
        RowInput(f"uncertainty_{name}", "float32", "FP32", ())
        for name in asking.calibration.supplied
    ]
    return [*asking.calibration.inputs, *supplied]


def _outputs(asking: Asking) -> list[str]:
    k = asking.calibration.events[0]
    return ["class", *(f"top{k}_{part}" for part in ("probability", "lower", "upper"))]


def _tensor(one: RowInput, data: object) -> dict[str, object]:
    datatype = WIDER.get(one.datatype, one.datatype)
    return {"name": one.name, "datatype": datatype, "shape": [1, *one.sizes], "data": data}


def _made(asking: Asking) -> str:
    """Return Python that prints the body, its rows of zeros as expressions."""
    tensors = ", ".join(
        repr(_tensor(one, HOLE)).replace(repr(HOLE), _numbers(one)) for one in _inputs(asking)
    )
    outputs = [{"name": name} for name in _outputs(asking)]
    return f"import json; print(json.dumps({{'inputs': [{tensors}], 'outputs': {outputs}}}))"


def _numbers(one: RowInput) -> str:
    return f"[1] + [0] * {one.count - 1}" if is_score(one) else f"[0] * {one.count}"


def _infer_input(one: RowInput) -> str:
    declared = f"{python_text(one.name)}, {[1, *one.sizes]}, {python_text(one.datatype)}"
    return f"triton.InferInput({declared}).set_data_from_numpy({_array(one)})"


def _array(one: RowInput) -> str:
    if is_score(one):
        return f"np.eye(1, {one.count}, dtype={python_text(one.dtype)})"
    return f"np.zeros({(1, *one.sizes)}, {python_text(one.dtype)})"
