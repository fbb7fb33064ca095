"""Hostile JSON at POST /predict: numbers that are none, and lists without measure."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import running_service
from hostile_case import Attacker, HostileCase

MALFORMED, ABSENT = (400, "malformed-request"), (404, "not-found")
INVALID, TOO_LARGE = (422, "invalid-input"), (413, "too-large")
OK = (200, "")
# In its place stands the id of a calibration, which is not known before it is sent.
MINE, OUTPUTS = "@mine", "@outputs"
ROW = ",".join(["1.0"] * 63)


def case(
    name: str, body: Callable[[], str | bytes], expected: tuple[int, str] = INVALID, **more: Any
) -> HostileCase:
    """Return the body's case; `MINE` and `OUTPUTS` in it are the attacker's calibrations."""

    def build() -> bytes:
        found = body()
        return found if isinstance(found, bytes) else found.encode("utf-8", "surrogatepass")

    def send(attacker: Attacker, built: bytes) -> Any:
        named = built.replace(MINE.encode(), attacker.calibration.encode())
        return attacker.predict(named.replace(OUTPUTS.encode(), attacker.outputs.encode()))

    return HostileCase(name, send, *expected, build=build, **more)


def with_value(text: str) -> str:
    """Return a body of one row whose last value is this text."""
    return f'{{"calibration":"{MINE}","inputs":[[{ROW},{text}]]}}'


def with_logit(text: str) -> str:
    return f'{{"calibration":"{OUTPUTS}","logits":[[1,2,{text}]]}}'


def value(
    name: str, text: str, expected: tuple[int, str] = INVALID, says: str = "inputs[0][63]"
) -> HostileCase:
    return case(f"value_{name}", lambda: with_value(text), expected, says=says)


def encoded(says: str = "inputs", **changed: Any) -> Callable[[], str]:
    """Return an array as its own bytes, with some of what is said of it changed."""
    tensor = running_service.encoded(np.ones((1, 64), np.float32)) | changed
    return lambda: json.dumps({"calibration": MINE, "inputs": tensor})


def named(text: str) -> Callable[[], str]:
    """Return a body whose calibration is this text of JSON."""
    return lambda: f'{{"calibration":{text},"inputs":[[1]]}}'


def inputs(text: str) -> Callable[[], str]:
    return lambda: f'{{"calibration":"{MINE}","inputs":{text}}}'


def repeated(part: str, n: int, last: str) -> Callable[[], str]:
    """Return a list of many parts, which is made when it is asked for."""

    def build() -> str:
        return inputs("[" + part * n + last + "]")()

    return build


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


VALUES = [
    value("nan", "NaN", MALFORMED, ""),
    value("1e999", "1e999"),
    value("1e39", "1e39"),
    value("true", "true"),
    value("string", '"0.1"'),
    value("null", "null"),
    value("integer_of_400_digits", "9" * 400),
    value("integer_of_100000_digits", "9" * 100_000),
    value("exponent_of_100000_digits", "1e" + "9" * 100_000),
    value("fraction_of_a_million_digits", "0." + "1" * 10**6, OK, ""),
    case("logit_nan", lambda: with_logit("NaN"), MALFORMED),
    case("logit_1e39", lambda: with_logit("1e39"), says="logits[0][2]"),
    case("logit_lone_surrogate", lambda: with_logit(r'"\ud800"'), MALFORMED),
    case(
        "probabilities_negative",
        lambda: f'{{"calibration":"{OUTPUTS}","probabilities":[[-1,1,1]]}}',
        says="probabilities[0]",
    ),
]
SHAPES = [
    case("ragged", inputs(f"[[{ROW},1],[{ROW}]]"), says="row 1"),
    case("empty_batch", inputs("[]"), says="inputs"),
    case("of_one_number", inputs("1"), says="inputs"),
    case("one_row_alone", inputs(f"[{ROW},1]"), says="inputs"),
    case(
        "10_million_columns",
        repeated("", 0, "[" + "1," * 10**7 + "1]"),
        TOO_LARGE,
        says="10000 rows",
    ),
    case("10_million_rows", repeated("[],", 10**7, "[]"), TOO_LARGE),
    case("100000_rows", repeated(f"[{ROW},1],", 99_999, f"[{ROW},1]"), TOO_LARGE),
    case("33_mebibytes", lambda: b" " * (33 * 2**20), TOO_LARGE),
    case("17_axes", inputs(nested(17))),
    case("100000_nested", inputs(nested(100_000)), MALFORMED),
    case("a_million_opened", lambda: b"[" * 10**6),
    case("nested_where_nobody_looks", lambda: '{"what":' + nested(100_000) + "}"),
    case(
        "2000_inputs", inputs("{" + ",".join(f'"n{k}":[[1]]' for k in range(2000)) + "}"), TOO_LARGE
    ),
    case("an_input_of_no_name", inputs('{"":[[1]]}')),
    case("a_name_of_a_megabyte", inputs('{"' + "n" * 10**6 + '":[[1]]}')),
]
BODIES = [
    case("nothing", lambda: b"", MALFORMED),
    case("half_an_object", lambda: b"{", MALFORMED),
    case("two_objects", lambda: with_value("1") * 2, MALFORMED),
    case("a_list", lambda: "[]"),
    case("unknown_field", lambda: with_value("1")[:-1] + ',"__class__":"os"}'),
    case("both_kinds", lambda: with_value("1")[:-1] + ',"logits":[[1]]}'),
    case("no_rows_at_all", lambda: f'{{"calibration":"{MINE}"}}'),
    case("no_calibration", lambda: f'{{"inputs":[[{ROW},1]]}}'),
    case("calibration_of_a_megabyte", named('"' + "c" * 10**6 + '"'), ABSENT),
    case("calibration_with_a_nul", named(r'"a\u0000b"'), ABSENT),
    case("calibration_of_a_lone_surrogate", named(r'"\ud800"'), MALFORMED),
    case(
        "calibration_named_twice",
        lambda: f'{{"calibration":"{MINE}","inputs":[[{ROW},1]],"calibration":"{OUTPUTS}"}}',
    ),
    # What stands last is what is meant, as in most readers.
    case("inputs_twice", lambda: with_value("1")[:-1] + f',"inputs":[[{ROW},2]]}}', OK),
    case("utf_16", lambda: with_value("1").encode("utf-16"), MALFORMED),
    case("bad_utf_8", lambda: b'{"calibration":"\xff","inputs":[[1]]}', MALFORMED),
    case("base64_of_too_little", encoded(b64="AAAA"), says="inputs.b64"),
    case("base64_that_is_none", encoded(b64="!!!!")),
    case("base64_of_objects", encoded(dtype="object")),
    case("base64_of_2_to_the_60_rows", encoded(shape=[2**60, 64]), TOO_LARGE),
    case("base64_of_2_to_the_200_columns", encoded(shape=[1, 2**200])),
    case("base64_of_a_negative_length", encoded(shape=[-1, -64]), says="inputs.shape"),
    case("base64_of_1000_axes", encoded(shape=[1] * 1000)),
    case(
        "base64_of_nan",
        encoded(**running_service.encoded(np.full((1, 64), np.nan, np.float32))),
        says="inputs[0][0]",
    ),
    case("base64_with_a_path", encoded(path="/etc/passwd")),
]


@pytest.mark.parametrize("case", VALUES + SHAPES + BODIES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
