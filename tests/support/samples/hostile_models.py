"""ONNX models that mean harm, and what each must be answered."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx
import numpy as np
from graph_models import as_bytes, node, value
from hostile_case import Attacker, HostileCase
from onnx import ModelProto, helper
from runner_models import ENDLESS, classifier, linear, loop_body, rows, weights
from running_service import npz, quick_config

UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
CREATED = httpx.codes.CREATED
# What is told of a model that breaks no rule.
ACCEPTED = {"status": CREATED, "code": "", "says": ""}
N_CLASSES = 10
N_SAMPLES = 60


def model_case(
    name: str,
    build: Callable[[], ModelProto | bytes],
    rule: str = "",
    *,
    status: int = UNPROCESSABLE,
    code: str = "invalid-onnx-model",
    says: str = "model",
    companions: Mapping[str, bytes] = {},
    inputs: Mapping[str, np.ndarray] = {},
) -> HostileCase:
    """Return the case of a model that breaks a rule, or none.

    ``companions`` are files of weights that are sent with it, ``inputs`` arrays of the calibration
    set; a few rows by default. Where the status is 201 the calibration begins, and ``code`` is
    that with which it fails.
    """
    return HostileCase(
        name,
        lambda attacker, data: upload(attacker, data, companions, inputs),
        status,
        code,
        says,
        seconds=20.0,
        build=lambda: as_bytes(build()),
        rule=rule,
    )


def upload(
    attacker: Attacker,
    model: bytes,
    companions: Mapping[str, bytes] = {},
    inputs: Mapping[str, np.ndarray] = {},
) -> httpx.Response:
    """Calibrate a model on a few rows."""
    arrays = inputs or {"x": rows(N_SAMPLES)}
    labels = np.arange(len(next(iter(arrays.values())))) % N_CLASSES
    content = npz(labels=labels, **arrays)
    return attacker.calibrate(content, model=model, config=quick_config(), **companions)


def loop(start: str, *nodes: Any) -> ModelProto:
    """Return a classifier with a loop that carries ``s`` to ``t`` and never ends by itself."""
    return classifier(
        node("Loop", ["most", "go", start], ["huge"], body=loop_body(*nodes)),
        node("ReduceMax", ["huge"], ["top"], keepdims=0),
        node("Add", ["z", "top"], ["y"]),
        constants={"most": ENDLESS, "go": True},
    )


def served(attacker: Attacker, model: ModelProto, features: list[float]) -> httpx.Response:
    """Calibrate on rows that do no harm, and ask about one that does."""
    made = upload(attacker, as_bytes(model), inputs={"x": np.abs(rows(N_SAMPLES)) + 1})
    assert made.status_code == CREATED, made.text
    assert made.json()["status"] == "succeeded", made.text
    found = made.json()["id"]
    return attacker.client.post("/predict", json={"calibration": found, "inputs": [features]})


def good() -> ModelProto:
    return linear(weights())


def function(name: str, *nodes: Any, domain: str = "own", **others: Any) -> Any:
    """Return a function from ``a`` to ``b``."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function(domain, name, ["a"], ["b"], list(nodes), imports, **others)


def calling(*functions: Any, name: str = "f", **attributes: Any) -> ModelProto:
    """Return a classifier whose logits go through one of its own functions."""
    return classifier(
        node(name, ["z"], ["y"], domain="own", **attributes),
        functions=list(functions),
        opset_imports=[helper.make_opsetid("own", 1)],
    )


def branch(*nodes: Any, output: str = "b", initializers: Any = ()) -> Any:
    """Return a graph of these nodes, for a branch."""
    return helper.make_graph(
        list(nodes), "branch", [], [value(output, ("N", N_CLASSES))], list(initializers)
    )


def in_branch(then: Any, otherwise: Any = None) -> ModelProto:
    """Return a classifier with an If whose condition is a constant: true."""
    if otherwise is None:
        otherwise = branch(node("Identity", ["z"], ["b"]))
    return classifier(
        node("If", ["always"], ["y"], then_branch=then, else_branch=otherwise),
        constants={"always": True},
    )


def delimited(number: int, content: bytes) -> bytes:
    """Return a field of protocol buffers that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])
