"""A running service that Triton's client can reach, and what such clients send."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import tritonclient.http as triton
from databases import put_sqlite_file
from forked_children import SERVER
from tritonclient.utils import np_to_triton_dtype

from service.cli.connection import running
from service.settings import Settings

LENGTH = "Inference-Header-Content-Length"


@contextmanager
def oip_service_on(folder: Path, **settings: Any) -> Iterator[tuple[httpx.Client, str]]:
    """Run the service on a port of this machine; yield a client of it and its address."""
    options = Settings(**{"data_dir": folder, "device": "cpu", "_env_file": None, **settings})
    put_sqlite_file(options.resolved_database_url())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with (
            running(options, sockets=[listening], start_child=SERVER.start_child),
            httpx.Client(base_url=f"http://{address}", timeout=60) as client,
        ):
            yield client, address


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
    size = {"binary_data_size": array.nbytes}
    return {
        "name": name,
        "shape": list(array.shape),
        "datatype": datatype,
        "parameters": size,
        **more,
    }


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
