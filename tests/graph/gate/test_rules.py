"""Each refusal of a model has a stable name."""

import ast
from pathlib import Path

import service
from service.errors import ModelRule

SOURCES = sorted(Path(service.__file__).parent.rglob("*.py"))


def test_no_model_is_refused_without_a_rule() -> None:
    nameless = [
        f"{path.name}:{call.lineno}"
        for path in SOURCES
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) in ("InvalidOnnxModel", "InvalidOnnxModel.at")
        and "rule" not in [given.arg for given in call.keywords]
    ]

    assert nameless == []


def test_every_rule_refuses_something() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)

    assert [rule for rule in ModelRule if f"ModelRule.{rule.name}" not in text] == []
