"""Hostile requests of the Open Inference Protocol: JSON, and tensors behind it that lie."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hostile_case import Attacker, HostileCase

N_FEATURES = 64
BYTES = np.ones((1, N_FEATURES), "<f4").tobytes()
LENGTH = "Inference-Header-Content-Length"


def tensor(**changed: Any) -> dict[str, Any]:
    whole = {"name": "inputs", "datatype": "FP32", "shape": [1, 64], "data": [1.0] * 64}
    return {key: value for key, value in (whole | changed).items() if value is not None}


def case(name: str, body: Callable[[], bytes], status: int = 400, says: str = "") -> HostileCase:
    return HostileCase(
        name, lambda attacker, built: attacker.infer(built), status, says=says, build=body
    )


def asked(case_name: str, says: str = "", *, status: int = 400, **changed: Any) -> HostileCase:
    """A request whose only tensor is changed."""
    return case(case_name, of(changed), status, says)


def of(*changes: dict[str, Any]) -> Callable[[], bytes]:
    """Return a body of tensors with these changes."""
    return lambda: json.dumps({"inputs": [tensor(**changed) for changed in changes]}).encode()


def with_value(text: str) -> Callable[[], bytes]:
    body = json.dumps({"inputs": [tensor(data=["@"] + [1.0] * 63)]})
    return lambda: body.replace('"@"', text).encode()


def binary(
    name: str,
    says: str = "",
    *,
    status: int = 400,
    content: bytes = BYTES,
    length: str | None = None,
    **changed: Any,
) -> HostileCase:
    """A request whose only tensor follows the JSON; ``length`` is what the header says of it."""
    told = {"data": None, "parameters": {"binary_data_size": len(content)}} | changed

    def send(attacker: Attacker) -> Any:
        head = json.dumps({"inputs": [tensor(**told)]}).encode()
        said = str(len(head)) if length is None else length
        return attacker.infer(head + content, **{LENGTH.replace("-", "_"): said})

    return HostileCase(f"binary_{name}", send, status, says=says)


def of_10_million_columns() -> bytes:
    head = json.dumps({"inputs": [tensor(shape=[1, 10**7], data=[])]}).encode()
    return head.replace(b"[]", b"[1" + b",1" * (10**7 - 1) + b"]")


def size(n_bytes: object) -> dict[str, Any]:
    return {"parameters": {"binary_data_size": n_bytes}}


CASES = [
    case("nothing", lambda: b""),
    case("half_an_object", lambda: b'{"inputs":'),
    case("no_tensors", lambda: b'{"inputs":[]}', says="inputs"),
    case("100000_nested", lambda: b'{"inputs":' + b"[" * 100_000),
    case("100000_nested_data", with_value("[" * 100_000 + "]" * 100_000)),
    case(
        "100000_nested_elsewhere",
        lambda: b'{"inputs":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ),
    case("value_nan", with_value("NaN")),
    case("value_infinity", with_value("Infinity")),
    case("value_1e999", with_value("1e999")),
    case("value_1e39", with_value("1e39"), says="[0]"),
    case("value_true", with_value("true")),
    case("value_string", with_value('"1"')),
    case("value_null", with_value("null")),
    case("value_of_400_digits", with_value("9" * 400)),
    asked("ragged", data=[[1.0] * 60, [1.0] * 4]),
    case("tensor_twice", of({}, {}), says="twice"),
    asked("data_too_short", "64 values", data=[1.0]),
    case("10_million_columns", of_10_million_columns, 413),
    asked("unknown_datatype", datatype="OBJECT"),
    asked("another_datatype", datatype="INT64", data=[1.5] * 64),
    asked("shape_of_2_to_the_60", status=413, shape=[2**60, 64]),
    asked("shape_negative", shape=[-1, 64]),
    asked("shape_of_1000_axes", shape=[1] * 999 + [64]),
    asked("another_name", name="\ud800"),
    asked("name_of_a_megabyte", name="n" * 10**6),
    asked("shared_memory", "shared memory", parameters={"shared_memory_region": "/dev/shm/x"}),  # noqa: S108
    binary("size_too_small", **size(8)),
    binary("size_of_2_to_the_62", **size(2**62)),
    binary("size_of_true", **size(True)),
    binary("shape_of_2_to_the_60", status=413, shape=[2**60, 64]),
    binary("shape_negative", shape=[-1, -64]),
    binary("of_both", data=[1.0] * 64),
    binary("bytes_left_over", content=BYTES + b"more", **size(len(BYTES))),
    binary("of_nan", content=np.full((1, 64), np.nan, "<f4").tobytes()),
    binary("of_booleans_of_2", content=bytes([2]) * 64, datatype="BOOL"),
    binary("header_length_beyond_the_body", LENGTH, length="99999999"),
    binary("header_length_of_text", LENGTH, length="1e3"),
    binary("header_length_of_zero", length="0"),
    binary("header_length_in_the_midst", length="20"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
