"""Hostile configurations at POST /calibrate."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hostile_case import HostileCase
from keyed_service import logits_of

INVALID = (422, "invalid-config")


def case(
    name: str,
    config: Callable[[], str | bytes] | dict[str, Any],
    says: str = "config",
    expected: tuple[int, str] = INVALID,
    **more: Any,
) -> HostileCase:
    """The configuration of a calibration of logits, of three classes."""
    return HostileCase(
        name,
        lambda attacker, built: attacker.calibrate(logits_of(), config=built),
        *expected,
        says=says,
        build=(lambda: json.dumps(config)) if isinstance(config, dict) else config,
        **more,
    )


CASES = [
    case("no_json", lambda: "{"),
    case("a_list", lambda: "[]"),
    case("null", lambda: "null"),
    case("nan", lambda: '{"interval":{"level":NaN}}'),
    case("infinity", lambda: '{"prior_strength":Infinity}'),
    case("1e999", lambda: '{"prior_strength":1e999}'),
    case("100000_nested", lambda: '{"top_k":' + "[" * 100_000 + "]" * 100_000 + "}"),
    case("lone_surrogate", lambda: r'{"name":"\ud800"}'),
    case("bad_utf_8", lambda: b'{"name":"\xff"}', expected=(422, "invalid-input")),
    case("9_mebibytes", lambda: " " * (9 * 2**20), expected=(413, "too-large")),
    case("unknown_field", {"__proto__": {"admin": True}}, "config.__proto__"),
    case("a_tenant", {"tenant_id": "neighbour"}, "config.tenant_id"),
    case("an_id", {"id": "0190a7e0-0000-7000-8000-000000000000"}, "config.id"),
    case("30000_unknown_fields", lambda: json.dumps({f"k{k}": k for k in range(30_000)})),
    case("field_of_a_megabyte", lambda: json.dumps({"k" * 10**6: 1})),
    case("name_of_a_parent", {"name": "../../etc/passwd"}, "config.name"),
    case("name_of_script", {"name": "<script>alert(1)</script>"}, "config.name"),
    case("name_of_a_formula", {"name": "=1+1"}, "config.name"),
    case("name_of_lines", {"name": "a\r\nSet-Cookie: x=1"}, "config.name"),
    case("name_of_a_megabyte", {"name": "n" * 10**6}, "config.name"),
    case("name_of_a_number", {"name": 7}, "config.name"),
    case("bins_of_text", {"bins": "10"}, "config.bins"),
    case("bins_of_true", {"bins": True}, "config.bins"),
    case("bins_of_a_fraction", {"bins": 10.5}, "config.bins"),
    case("bins_negative", {"bins": -1}, "config.bins"),
    case("bins_of_2_to_the_62", {"bins": 2**62}, "config.bins"),
    case("bins_of_400_digits", lambda: '{"bins":' + "9" * 400 + "}"),
    case("seed_of_2_to_the_64", {"seed": 2**64}, "config.seed"),
    case("folds_of_2_to_the_31", {"folds": 2**31}, "config.folds"),
    case("top_k_of_zero", {"top_k": [0]}, "config.top_k"),
    case("top_k_of_true", {"top_k": [True]}, "config.top_k"),
    case("top_k_beyond_the_classes", {"top_k": [3]}, "config.top_k"),
    case("top_k_of_300000", lambda: json.dumps({"top_k": list(range(1, 300_000))}), "config.top_k"),
    case("measures_of_200000", lambda: json.dumps({"measures": ["entropy"] * 200_000})),
    case("measure_that_there_is_not", {"measures": ["os.system"]}, "config.measures"),
    case("dropout_passes_of_2_to_the_40", {"dropout": {"passes": 2**40}}, "config.dropout"),
    case("classes_of_nothing", {"classes": ["", "", ""]}, "config.classes"),
    case("classes_too_few", {"classes": ["a", "b"]}, "config.classes"),
    case("class_of_a_megabyte", {"classes": ["c" * 10**6, "b", "a"]}, "config.classes"),
    case("class_map_negative", {"class_map": {"cat": -1}}, "config.class_map"),
    case("class_map_of_2_to_the_40", {"class_map": {"cat": 2**40}}, "config.class_map"),
    case("columns_of_nothing", {"columns": {"inputs": []}}, "config.columns"),
    case("targets_of_300000", lambda: json.dumps({"targets": [0.5] * 300_000}), "config.targets"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
