"""One prediction in all request formats; multipart bodies; JSON schemas."""

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import numpy as np
import tritonclient.http as triton
from jsonschema import Draft202012Validator
from plain_answers import arrays_of
from running_service import NPY, NPZ, encoded, npy, npz
from tritonclient.utils import np_to_triton_dtype

from service.http.uploads import PartRule, SpooledUpload, UploadLimits, spool_multipart

LENGTH = "Inference-Header-Content-Length"


def tensor(name: str, array: np.ndarray, *, binary: bool = True) -> triton.InferInput:
    """Return an input as Triton's client makes it."""
    made = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    return made.set_data_from_numpy(array, binary_data=binary)


def in_json(name: str, array: np.ndarray, datatype: str = "FP32", **more: Any) -> dict[str, Any]:
    """Return an input with its numbers in a flat list."""
    data = array.ravel().tolist()
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": data, **more}


def in_bytes(name: str, array: np.ndarray, datatype: str = "FP32", **more: Any) -> dict[str, Any]:
    """Return an input whose numbers follow the JSON."""
    size = {"parameters": {"binary_data_size": array.nbytes}}
    return {"name": name, "shape": list(array.shape), "datatype": datatype} | size | more


def infer(
    client: httpx.Client, model: str, request: Any, *raw: bytes, **headers: str
) -> httpx.Response:
    """POST a request of the protocol; the raw tensors go behind its JSON."""
    head = request if isinstance(request, bytes) else json.dumps(request).encode()
    if raw:
        headers = {LENGTH: str(len(head)), **headers}
    body = b"".join([head, *raw])
    return client.post(f"/v2/models/{model}/infer", content=body, headers=headers)


def outputs_of(answer: httpx.Response) -> dict[str, np.ndarray]:
    """Return the outputs of an answer, read by Triton's client."""
    assert answer.status_code == httpx.codes.OK, answer.text
    length = answer.headers.get(LENGTH)
    result = triton.InferenceServerClient.parse_response_body(
        answer.content, header_length=None if length is None else int(length)
    )
    names = [output["name"] for output in result.get_response()["outputs"]]
    return {name: result.as_numpy(name) for name in names}


def declared(client: httpx.Client, model: str) -> list[tuple[str, str, list[int]]]:
    """Return name, datatype and shape of each input of a model."""
    tensors = client.get(f"/v2/models/{model}").json()["inputs"]
    return [(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in tensors]


AS_NPZ = {"Accept": "application/x-npz"}
PARTS = ("probability", "lower", "upper", "bin")


@dataclass(frozen=True)
class Sent:
    """A request as it goes out."""

    path: str
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)

    def by(self, client: httpx.Client) -> httpx.Response:
        """Send it."""
        return client.post(
            self.path, content=self.content, headers=self.headers, params=self.params
        )


Form: TypeAlias = Callable[[str, str, np.ndarray], Sent]


def as_json(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"calibration": name, kind: rows.tolist()})


def as_json_named_last_in_escapes(name: str, kind: str, rows: np.ndarray) -> Sent:
    letters = "".join(f"\\u{ord(letter):04x}" for letter in name)
    text = json.dumps({kind: rows.tolist(), "calibration": "?"}).replace("?", letters)
    return Sent("/predict", text.encode())


def as_base64(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"calibration": name, kind: encoded(rows)})


def as_npy(name: str, _: str, rows: np.ndarray) -> Sent:
    return Sent("/predict", npy(rows), NPY, {"calibration": name})


def as_npz(name: str, kind: str, rows: np.ndarray) -> Sent:
    arrays = {kind: rows}
    return Sent("/predict", npz(compressed=True, **arrays), NPZ | AS_NPZ, {"calibration": name})


def as_tensors_in_json(name: str, kind: str, rows: np.ndarray) -> Sent:
    return Sent(_infer(name), json.dumps({"inputs": [in_json(kind, rows)]}).encode())


def as_tensors_in_bytes(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)]})


def as_tensors_with_bytes_back(name: str, kind: str, rows: np.ndarray) -> Sent:
    wanted = {"parameters": {"binary_data_output": True, "timeout": 60_000_000}}
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)], **wanted})


def as_gzip(name: str, kind: str, rows: np.ndarray) -> Sent:
    sent = as_tensors_with_bytes_back(name, kind, rows)
    headers = sent.headers | {"Content-Encoding": "gzip"}
    return Sent(sent.path, gzip.compress(sent.content), headers)


FORMS: tuple[Form, ...] = (
    *(as_json, as_json_named_last_in_escapes, as_base64, as_npy, as_npz, as_tensors_in_json),
    *(as_tensors_in_bytes, as_tensors_with_bytes_back, as_gzip),
)


def with_nan(name: str, kind: str, rows: np.ndarray) -> Sent:
    spoilt = rows.copy()
    spoilt[-1, 0] = np.nan
    return as_npy(name, kind, spoilt)


def too_wide(name: str, kind: str, rows: np.ndarray) -> Sent:
    return as_json(name, kind, np.hstack([rows, rows]))


def asks_for_nothing_there_is(name: str, kind: str, rows: np.ndarray) -> Sent:
    wanted = {"outputs": [{"name": "class"}, {"name": "nothing"}]}
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)], **wanted})


def names_another_at_last(name: str, kind: str, rows: np.ndarray) -> Sent:
    text = as_json(name, kind, rows).content
    return Sent("/predict", text[:-1] + b', "calibration": "other"}')


def names_a_stranger(_: str, kind: str, rows: np.ndarray) -> Sent:
    return as_json("a stränger", kind, rows)


def breaks_off(name: str, kind: str, rows: np.ndarray) -> Sent:
    return Sent("/predict", as_json(name, kind, rows).content[:-3])


def is_no_gzip(name: str, kind: str, rows: np.ndarray) -> Sent:
    sent = as_tensors_in_json(name, kind, rows)
    return Sent(sent.path, sent.content, {"Content-Encoding": "gzip"})


REFUSED: tuple[Form, ...] = (
    *(with_nan, too_wide, asks_for_nothing_there_is, names_another_at_last, names_a_stranger),
    *(breaks_off, is_no_gzip),
)


def said(answer: httpx.Response) -> tuple[Any, ...]:
    """Return what an answer says that other rows may not change: status, and rows or sentence."""
    if answer.status_code != httpx.codes.OK:
        problem = {name: part for name, part in answer.json().items() if name != "request_id"}
        return answer.status_code, json.dumps(problem), answer.headers.get("retry-after")
    return answer.status_code, said_of_rows(answer)


def said_of_rows(answer: httpx.Response) -> dict[str, list[Any]]:
    """Return class, bins, probabilities and intervals, of whatever form."""
    if answer.headers["content-type"].startswith("application/x-npz"):
        return _of_arrays(dict(np.load(io.BytesIO(answer.content))))
    if "predictions" not in answer.text[:200] and "outputs" in answer.text[:200]:
        return _of_arrays(outputs_of(answer))
    arrays = arrays_of(answer.json()["predictions"])
    # The other forms hold float32.
    return _of_arrays({n: a.astype("f4") if a.dtype.kind == "f" else a for n, a in arrays.items()})


def _of_arrays(arrays: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    names = [name for name in arrays if name == "class" or name.endswith(PARTS)]
    return {name: arrays[name].tolist() for name in names}


def _json(body: dict[str, Any]) -> Sent:
    return Sent("/predict", json.dumps(body, ensure_ascii=False).encode())


def _infer(name: str) -> str:
    return f"/v2/models/{name}/infer"


def _tensors(name: str, rows: np.ndarray, request: dict[str, Any]) -> Sent:
    head = json.dumps(request).encode()
    return Sent(_infer(name), head + rows.tobytes(), {LENGTH: str(len(head))})


BOUNDARY = b"a-boundary"
CONTENT_TYPE = "multipart/form-data; boundary=a-boundary"
MEBIBYTE = 1024**2
RULES = {
    "model": PartRule(max_bytes=MEBIBYTE, repeatable=True, is_file=True),
    "calibration": PartRule(max_bytes=MEBIBYTE, repeatable=False, is_file=True),
    "config": PartRule(max_bytes=1000, repeatable=False, is_file=False),
}
LIMITS = UploadLimits(
    max_model_bytes=MEBIBYTE, max_model_data_bytes=MEBIBYTE, max_dataset_bytes=MEBIBYTE
)


def part(headers: str, data: bytes = b"data") -> bytes:
    """Return one part with any headers."""
    return b"--" + BOUNDARY + b"\r\n" + headers.encode() + b"\r\n\r\n" + data + b"\r\n"


def file_part(name: str, filename: str, data: bytes = b"data") -> bytes:
    """Return a part with a file."""
    return part(f'Content-Disposition: form-data; name="{name}"; filename="{filename}"', data)


def text_part(name: str, data: bytes) -> bytes:
    """Return a part with a text."""
    return part(f'Content-Disposition: form-data; name="{name}"', data)


def body(*parts: bytes) -> bytes:
    """Return parts as a whole body."""
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


async def streamed(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks as a server does, giving way between them."""
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)


def pieces(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Cut data into pieces of these sizes, over and over."""
    found, at = [], 0
    while at < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append(data[at : at + size])
        at += size
    return found


def receive(
    folder: Path,
    chunks: Iterable[bytes],
    *,
    content_type: str = CONTENT_TYPE,
    limits: UploadLimits = LIMITS,
    rules: Mapping[str, PartRule] = RULES,
) -> SpooledUpload:
    """Receive a body."""
    return asyncio.run(
        spool_multipart(content_type, streamed(chunks), folder=folder, limits=limits, parts=rules)
    )


def faults(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Return where a value breaks a schema of the document; also properties it does not name."""
    whole = _closed({**schema, "components": document["components"]})
    found = Draft202012Validator(whole).iter_errors(value)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no other properties than those that it names."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    other = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return other | {key: _closed(part) for key, part in schema.items()}
