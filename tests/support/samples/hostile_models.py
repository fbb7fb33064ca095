"""ONNX models that mean harm, and what each must be answered."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from graph_models import constant, make_model, node, value
from hostile_case import Attacker, HostileCase
from onnx import ModelProto, TensorProto, helper
from runner_models import ENDLESS, N_FEATURES, linear, rows, weights

UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
CREATED = httpx.codes.CREATED
N_CLASSES = 10
N_SAMPLES = 60


@dataclass(frozen=True)
class ModelCase:
    """A model, the rule that it breaks, and how it is told.

    Attributes
    ----------
    build : callable
        Returns the model or its bytes; called when the case is run.
    rule : str
        ``rule`` of the first of the problem's errors; "" where it breaks none.
    status, code, says, seconds
        As those of a `HostileCase`. Where the status is 201 the calibration begins, and ``code``
        is that with which it fails.
    companions : mapping
        Files of weights that are sent with it.
    inputs : mapping
        Arrays of the calibration set.
    """

    name: str
    build: Callable[[], ModelProto | bytes]
    rule: str = ""
    status: int = UNPROCESSABLE
    code: str = "invalid-onnx-model"
    says: str = "model"
    seconds: float = 20.0
    companions: Mapping[str, bytes] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=lambda: {"x": samples()})

    def __str__(self) -> str:
        return self.name

    def sent(self) -> HostileCase:
        return HostileCase(
            self.name,
            lambda attacker, data: upload(attacker, data, self.companions, self.inputs),
            self.status,
            self.code,
            self.says,
            seconds=self.seconds,
            build=lambda: as_bytes(self.build()),
        )


def assert_told(hostile: Callable[[HostileCase], httpx.Response], case: ModelCase) -> None:
    """Send it; everything that must hold of hostile cases does, and the rule is the right one."""
    found = hostile(case.sent()).json()
    problem = (found["error"] or {}) if found["status"] in ("succeeded", "failed") else found
    broken = [entry.get("rule", "") for entry in problem.get("errors", [])] or [""]
    assert broken == [case.rule], problem


def upload(
    attacker: Attacker,
    model: ModelProto | bytes,
    companions: Mapping[str, bytes] | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> httpx.Response:
    """Calibrate a model on a few rows."""
    parts = [("model_data", name, content) for name, content in (companions or {}).items()]
    return attacker.calibrate(
        calibration_set(inputs or {"x": samples()}), model=as_bytes(model), parts=parts
    )


def as_bytes(model: ModelProto | bytes) -> bytes:
    return model if isinstance(model, bytes) else model.SerializeToString()


def samples(n_rows: int = N_SAMPLES) -> np.ndarray:
    return rows(n_rows)


def calibration_set(inputs: Mapping[str, np.ndarray]) -> bytes:
    labels = np.arange(len(next(iter(inputs.values())))) % N_CLASSES
    file = io.BytesIO()
    np.savez(file, labels=labels, **inputs)
    return file.getvalue()


def classifier(*nodes: Any, outputs: Any = None, inputs: Any = None, **others: Any) -> ModelProto:
    """Return a model that has the logits ``z`` of ten classes at hand, and makes ``y`` of them.

    ``w`` are its weights, ``x`` its input.
    """
    initializers = [constant("w", weights()), *others.pop("initializers", [])]
    return make_model(
        [node("MatMul", ["x", "w"], ["z"]), *nodes],
        inputs=[value("x", ("N", N_FEATURES))] if inputs is None else inputs,
        outputs=[value("y", ("N", N_CLASSES))] if outputs is None else outputs,
        initializers=initializers,
        **others,
    )


def loop(start: str, *nodes: Any) -> ModelProto:
    """Return a classifier with a loop that carries ``s`` to ``t`` and never ends by itself."""
    body = helper.make_graph(
        [node("Identity", ["keep"], ["kept"]), *nodes],
        "body",
        [value("i", (), TensorProto.INT64), value("keep", (), TensorProto.BOOL), value("s", None)],
        [value("kept", (), TensorProto.BOOL), value("t", None)],
    )
    return classifier(
        node("Loop", ["most", "go", start], ["huge"], body=body),
        node("ReduceMax", ["huge"], ["top"], keepdims=0),
        node("Add", ["z", "top"], ["y"]),
        initializers=[
            constant("most", ENDLESS, np.int64),
            constant("go", True, np.bool_),
            constant("one", [[1.0]]),
        ],
    )


def served(attacker: Attacker, model: ModelProto, features: list[float]) -> httpx.Response:
    """Calibrate on rows that do no harm, and ask about one that does."""
    made = upload(attacker, model, inputs={"x": np.abs(samples()) + 1})
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
        initializers=[constant("always", True, np.bool_)],
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
