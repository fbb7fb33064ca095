"""A hundred requests that cost a server much more than their sender."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import urlencode

import numpy as np

MEBIBYTE = 1024**2
JSON = "application/json"
# Slightly less than the service takes: of headers, of a prediction, of a configuration.
HEADER_BYTES = 60_000
BODY_BYTES = 30 * MEBIBYTE
CONFIG_BYTES = 256 * 1024 - 1000
BOUNDARY = "costly"


@dataclass(frozen=True)
class Costly:
    """One request."""

    name: str
    path: str
    method: str = "POST"
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def costly_requests(
    name: str, document: Mapping[str, object], *, features: int, sets: bool = True
) -> list[Costly]:
    """Return the requests; ``document`` holds the large bin tables of the calibration ``name``.

    Those with rows or sets, which take long to make, are left out without ``sets``.
    """
    with_sets = [_predictions(name, features), _open_inference(name), _uploads()]
    return [
        *_heads(name),
        *chain.from_iterable(with_sets if sets else []),
        *_documents(name, document),
        *_answers(name),
    ]


def _heads(name: str) -> Iterator[Costly]:
    many = {
        "Cookie": "a=" + "\\" * (HEADER_BYTES // 2),
        "Accept": ",".join(["text/html;q=0.1"] * (HEADER_BYTES // 16)),
        "Accept-Language": ",".join(["de;q=0.5"] * (HEADER_BYTES // 9)),
        "Accept-Encoding": ",".join(["br;q=0.5"] * (HEADER_BYTES // 9)),
        "If-None-Match": ",".join(['W/"x"'] * (HEADER_BYTES // 6)),
        "Prefer": ",".join(["wait=1"] * (HEADER_BYTES // 7)),
        "Content-Type": "multipart/form-data; boundary=" + "-" * HEADER_BYTES,
        "Idempotency-Key": "k" * HEADER_BYTES,
        "X-Request-ID": "r" * HEADER_BYTES,
        "Range": "bytes=" + ",".join(["0-1"] * (HEADER_BYTES // 4)),
        "Last-Event-ID": "9" * HEADER_BYTES,
        "Origin": "http://" + "a." * (HEADER_BYTES // 2),
    }
    cookies = "; ".join(f'c{i}="\\{i:03o}"' for i in range(HEADER_BYTES // 14))
    for header, value in many.items():
        yield Costly(f"header {header}", f"/calibrations/{name}", "GET", headers={header: value})
    yield Costly("header Cookie of many", "/", "GET", headers={"Cookie": cookies})
    yield Costly("header Cookie", "/sign-in", "GET", headers={"Cookie": many["Cookie"]})
    for path in ("/report", "/calibrations", "/audit", "/"):
        query = "&".join(["calibration=x"] * (HEADER_BYTES // 14))
        yield Costly(f"query of {path}", f"{path}?{query}", "GET")
    yield Costly("deep path", "/calibrations" + "/a" * (HEADER_BYTES // 2), "GET")
    yield Costly("percent signs", "/calibrations/" + "%25" * (HEADER_BYTES // 3), "GET")


def _predictions(name: str, features: int) -> Iterator[Costly]:
    def sent(what: str, body: bytes, kind: str = JSON, **headers: str) -> Costly:
        path = f"/predict?calibration={name}" if kind != JSON else "/predict"
        return Costly(
            f"predict: {what}", path, content=body, headers={"Content-Type": kind} | headers
        )

    def inputs(text: str) -> bytes:
        return f'{{"calibration": "{name}", "inputs": {text}}}'.encode()

    tiny = "[" + ",".join(["[]"] * (BODY_BYTES // 3)) + "]"
    yield sent("tiny lists", inputs(tiny))
    yield sent("tiny lists, inflated", gzip.compress(inputs(tiny)), **{"Content-Encoding": "gzip"})
    yield sent("deep lists", inputs("[" * 500_000 + "]" * 500_000))
    yield sent("long numbers", inputs("[[" + ",".join(["1" * 4000] * 7000) + "]]"))
    yield sent("one number", inputs("[[" + "1" * BODY_BYTES + "]]"))
    yield sent("exponents", inputs("[[" + ",".join(["1e308"] * (BODY_BYTES // 6)) + "]]"))
    yield sent("escapes", inputs('"' + "\\u0041" * (BODY_BYTES // 6) + '"'))
    yield sent("keys", b"{" + b",".join(b'"%d":1' % i for i in range(2_000_000)) + b"}")
    yield sent("one key", b'{"a":1' + b',"a":1' * (BODY_BYTES // 6) + b"}")
    yield sent("cut", inputs(tiny)[:-9])
    row = "[" + ",".join(["0.1"] * features) + "]"
    yield sent("rows", inputs("[" + ",".join([row] * (BODY_BYTES // len(row) - 1)) + "]"))
    yield sent("names", inputs(json.dumps([{f"c{i}": 1 for i in range(1_000_000)}])))
    yield sent("spaces", b" " * BODY_BYTES + inputs("[[1]]"))
    yield sent("zeros, inflated", gzip.compress(bytes(BODY_BYTES)), **{"Content-Encoding": "gzip"})
    yield sent(
        "b64", inputs(json.dumps({"b64": "A" * BODY_BYTES, "dtype": "float32", "shape": [1]}))
    )
    yield sent("npy", _npy((BODY_BYTES // 4 // features, features)), "application/x-npy")
    yield sent("npy, empty rows", _npy((0, 1)) + bytes(BODY_BYTES), "application/x-npy")
    yield sent("npy, many axes", _npy((1,) * 32), "application/x-npy")
    yield sent("npz", _npz(2000), "application/x-npz")
    yield sent("zip of members", _zip(50_000), "application/x-npz")


def _open_inference(name: str) -> Iterator[Costly]:
    def sent(what: str, body: bytes, model: str = name, **headers: str) -> Costly:
        path = f"/v2/models/{model}/infer"
        return Costly(
            f"infer: {what}", path, content=body, headers={"Content-Type": JSON} | headers
        )

    one = '{"name":"i","shape":[1],"datatype":"FP32","data":[1]}'
    many = "[" + ",".join([one] * (BODY_BYTES // len(one) - 1)) + "]"
    inputs = f'{{"inputs": {many}}}'.encode()
    timeout = f'{{"parameters": {{"timeout": 1000000}}, "inputs": {many}}}'.encode()
    yield sent("inputs", inputs)
    yield sent("inputs of no model", inputs, "unknown")
    yield sent("timeout", timeout)
    yield sent("timeout of no model", timeout, "unknown")
    yield sent("inflated", gzip.compress(timeout), **{"Content-Encoding": "gzip"})
    yield sent("backslashes", b'{"inputs": "' + b"\\u0074" * (BODY_BYTES // 6) + b'"}')
    yield sent(
        "timeouts", b'{"parameters": {' + b'"timeout": 1,' * (BODY_BYTES // 13) + b'"a": 1}}'
    )
    yield sent("64 KiB of timeouts", b'{"parameters": {' + b'"timeout":1,' * 5000 + b'"a": 1}}')
    data = '{"inputs":[{"name":"i","shape":[1],"datatype":"FP32","data":%s}]}'
    yield sent("deep data", (data % ("[" * 400_000 + "]" * 400_000)).encode())
    yield sent("data", (data % ("[" + "1," * (BODY_BYTES // 2 - 50) + "1]")).encode())
    yield sent("words", (data % json.dumps(["x"] * (BODY_BYTES // 6))).encode())
    yield sent(
        "parameters", json.dumps({"parameters": {f"p{i}": i for i in range(1_000_000)}}).encode()
    )
    raw = {"Inference-Header-Content-Length": str(BODY_BYTES)}
    yield sent("long head of a raw body", b'{"a":"' + b"x" * (BODY_BYTES - 8) + b'"}', **raw)


def _uploads() -> Iterator[Costly]:
    def sent(what: str, *parts: tuple[str, str, bytes]) -> Costly:
        kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        return Costly(
            f"upload: {what}", "/calibrate?dry_run=true", content=_form(parts), headers=kind
        )

    def config(what: str, text: str) -> Costly:
        return sent(f"config, {what}", ("config", "", text.encode()), table)

    table = ("calibration", "c.csv", b"logit_0,logit_1,label\n" + b"0.1,0.2,1\n" * 100)
    yield config("keys", json.dumps({f"k{i:06}": 1 for i in range(CONFIG_BYTES // 14)}))
    yield config("classes", json.dumps({"classes": [f"c{i}" for i in range(CONFIG_BYTES // 11)]}))
    yield config("equal classes", json.dumps({"classes": ["c"] * (CONFIG_BYTES // 5)}))
    class_map = {f"{i}": i for i in range(CONFIG_BYTES // 17)}
    yield config("class map", json.dumps({"class_map": class_map}))
    yield config("columns", json.dumps({"columns": {"inputs": ["x"] * (CONFIG_BYTES // 5)}}))
    yield config("wrong columns", json.dumps({"columns": {"inputs": [1] * (CONFIG_BYTES // 3)}}))
    yield config("deep", '{"ood":' + "[" * 100_000 + "]" * 100_000 + "}")
    yield config("long string", json.dumps({"name": "x" * CONFIG_BYTES}))
    yield config("numbers", json.dumps({"top_k": list(range(CONFIG_BYTES // 8))}))
    yield config("large number", '{"bins":' + "9" * (CONFIG_BYTES - 10) + "}")
    wide = ",".join(f"logit_{i}" for i in range(50_000)) + ",label\n" + "0.1," * 50_000 + "1\n"
    yield sent("wide table", ("calibration", "c.csv", wide.encode()))
    yield sent("long table", ("calibration", "c.csv", table[2] * 20_000))
    yield sent("quotes", ("calibration", "c.csv", b'"' * BODY_BYTES))
    yield sent("zip of members", ("calibration", "c.zip", _zip(50_000)))
    yield sent("npz", ("calibration", "c.npz", _npz(2000)))
    yield sent("npy", ("calibration", "c.npy", _npy((BODY_BYTES // 40, 10))))
    yield sent("parquet", ("calibration", "c.parquet", b"PAR1" + bytes(BODY_BYTES) + b"PAR1"))
    yield sent("model of zeros", ("model", "m.onnx", bytes(BODY_BYTES)), table)
    yield sent(
        "model of fields", ("model", "m.onnx", b"\x3a\x02\x0a\x00" * (BODY_BYTES // 4)), table
    )
    yield sent("parts", *[("config", "", b"{}")] * 50_000)
    yield sent("bytes without parts", ("x" * HEADER_BYTES, "", b""))
    yield sent("line ends", ("calibration", "c.csv", b"\r\n-" * (BODY_BYTES // 3)))


def _documents(name: str, document: Mapping[str, object]) -> Iterator[Costly]:
    def imported(what: str, text: str) -> Costly:
        headers = {"Content-Type": JSON}
        path = "/calibrations/import?name=imported"
        return Costly(f"import: {what}", path, content=text.encode(), headers=headers)

    def refit(what: str, text: str) -> Costly:
        path = f"/calibrations/{name}/refit"
        content = text.encode()
        return Costly(f"refit: {what}", path, content=content, headers={"Content-Type": JSON})

    text = json.dumps(document)
    yield imported("large", text)
    yield imported("wrong digest", json.dumps({**document, "content_sha256": "0" * 64}))
    yield imported("wrong tables", json.dumps({**document, "tables": [{}] * 1_000_000}))
    yield imported("keys", json.dumps({f"k{i}": 0 for i in range(500_000)}))
    yield imported("deep", "[" * 4_000_000)
    yield imported("classes", json.dumps({**document, "classes": ["c"] * 1_000_000}))
    yield refit("keys", json.dumps({f"k{i}": 0 for i in range(60_000)}))
    yield refit("numbers", json.dumps({"top_k": list(range(120_000))}))
    yield refit("deep", "[" * 1_000_000)
    fields = urlencode([(f"f{i}", "x") for i in range(90_000)]).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    pages = f"/pages/calibrations/{name}"
    for path in ("/sign-in", "/sign-out", f"{pages}/operating-points", f"{pages}/try"):
        yield Costly(f"form of {path.removeprefix(pages)}", path, content=fields, headers=form)


def _answers(name: str) -> Iterator[Costly]:
    def got(path: str) -> Costly:
        return Costly(f"GET {path.replace(f'&calibration={name}' * 19, '&…')}", path, "GET")

    alike = "&".join([f"calibration={name}"] * 20)
    for kind in ("json", "html", "csv", "md"):
        yield got(f"/report?calibration={name}&format={kind}")
    for kind in ("json", "html"):
        yield got(f"/report?{alike}&format={kind}")
    for kind in ("json", "csv", "parquet"):
        yield got(f"/calibrations/{name}/bins?format={kind}")
    pages = f"/pages/calibrations/{name}"
    for page in ("measures", "operating-point", "samples", "integrate", "try"):
        yield got(f"{pages}/{page}")
    for path in ("/calibrations?limit=100", "/audit?limit=1000", "/metrics", "/usage", "/models"):
        yield got(path)
    yield got(f"/calibrations/{name}/export")
    yield got("/openapi.json")


def _form(parts: tuple[tuple[str, str, bytes], ...]) -> bytes:
    found = []
    for name, filename, content in parts:
        named = f'; filename="{filename}"' if filename else ""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
        found.append(head.encode() + content + b"\r\n")
    return b"".join(found) + f"--{BOUNDARY}--\r\n".encode()


def _npy(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(shape, np.float32))
    return file.getvalue()


def _npz(members: int) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{f"a{i}": np.zeros(1000, np.float32) for i in range(members)})
    return file.getvalue()


def _zip(members: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for i in range(members):
            archive.writestr(f"{i}.npy", b"")
    return file.getvalue()
