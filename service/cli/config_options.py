"""Options for the keys of a configuration, and their values as JSON."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from service.calibrations.config import OutputConfig
from service.calibrations.fit_config import FitConfig
from service.cli.console import optional
from service.cli.failure import CommandFailed, read_json

Number = TypeVar("Number", int, float)


def _values(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401 - any type
    """Return the literal values that a type allows."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for option in get_args(annotation) for value in _values(option))


LOOKUPS = _values(FitConfig.model_fields["lookup"].annotation)
OUTPUT_KINDS = _values(OutputConfig.model_fields["kind"].annotation)


def _option(metavar: str, text: str, kind: Any = str) -> Any:  # noqa: ANN401 - any type
    return optional(metavar, text, kind, panel="Configuration")


ConfigOption = _option(
    "JSON", "The whole configuration: JSON or a JSON file. Options for single keys override it."
)
# By key: those that a refit may change, and all.
FIT_OPTIONS: Mapping[str, Any] = {
    "bins": _option("N", "Number of bins, or auto."),
    "lookup": _option("|".join(LOOKUPS), "How a probability is read from the bins."),
    "measures": _option("A,B", "Uncertainty measures, such as entropy,margin."),
    "top_k": _option("K,K", "Events to calibrate, such as 1,5."),
    "max_risk": _option(
        "RATE,RATE", "Error rates of answers that are accepted; default: 0.05,0.01."
    ),
}
ALL_OPTIONS: Mapping[str, Any] = {
    **FIT_OPTIONS,
    "output": _option("NAME", "Output of the model to read."),
    "output_kind": _option("|".join(OUTPUT_KINDS), "What that output holds; default: inferred."),
    "decision_threshold": _option(
        "P", "P(class 1) from which class 1 of two is predicted; default: 0.5.", float
    ),
    "classes": _option("A,B", "Class names by index; or a file with one name per line, or JSON."),
    "columns": _option(
        "[NAME=]A,B",
        "Table columns of the model's input NAME, or label=COLUMN; repeat it, or give JSON.",
        list[str],
    ),
    "preprocessing": _option(
        "PRESET", "Preprocessing of pictures: imagenet, clip, unit, none, JSON or a JSON file."
    ),
    "class_map": _option("JSON", "Class index by folder or label name: JSON or a JSON file."),
}
# The key of `config.columns` for a model with one input, whatever its name.
ONLY_INPUT = "inputs"

_EXAMPLES = {
    "--config": '{"bins": 10}',
    "--class-map": '{"cat": 0, "dog": 1}',
    "--columns": '{"inputs": ["age", "income"]}',
    "--preprocessing": '{"resize": 256, "crop": 224}',
}


def config_option(text: str | None, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - one type each
    """Return the configuration from JSON or a JSON file, overridden by options by their key.

    ``output`` and ``output_kind`` are the two keys of ``output``; ``max_risk`` is ``selective``.
    Options that are None are left out. The service checks the values.

    Raises
    ------
    CommandFailed
        If a file cannot be read, or an option cannot be turned into JSON.
    """
    config = {} if text is None else _json_object(text, "--config")
    values = {key: value for key, value in options.items() if value is not None}
    output = {key: values.pop(name) for name, key in _OUTPUT.items() if name in values}
    if output:
        known = config.get("output")
        config["output"] = (known if isinstance(known, dict) else {}) | output
    if "max_risk" in values:
        risks = _numbers(values.pop("max_risk"), float, "--max-risk", "rates such as 0.1,0.05")
        config["selective"] = [{"max_risk": risk} for risk in risks]
    for key, value in values.items():
        config[key] = _READERS[key](value) if key in _READERS else value
    return config


_OUTPUT = {"output": "name", "output_kind": "kind"}


def _bins(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _numbers(text: str, kind: Callable[[str], Number], option: str, example: str) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise CommandFailed(f"{option}: expected {example}, got {text!r}") from error


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _preprocessing(text: str) -> str | dict[str, Any]:
    is_name = text.isidentifier() and not _is_file(text)
    return text if is_name else _json_object(text, "--preprocessing")


def _classes(text: str) -> Any:  # noqa: ANN401 - any JSON, which the service checks
    if _is_file(text):
        text = _read(text, "--classes").strip()
        if text.startswith("{"):  # config.json of the hub's models
            names = read_json(text, "--classes").get("id2label")
            if not isinstance(names, dict):
                raise CommandFailed("--classes: expected a list, or an object with id2label")
            return [names[index] for index in sorted(names, key=lambda index: (len(index), index))]
        if not text.startswith("["):
            return text.splitlines()
    return read_json(text, "--classes") if text.startswith("[") else _words(text)


def _columns(texts: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        if text.lstrip().startswith("{") or _is_file(text):
            found |= _json_object(text, "--columns")
            continue
        name, separator, columns = text.partition("=")
        found[name if separator else ONLY_INPUT] = _words(columns if separator else text)
    return found


_READERS: dict[str, Callable[[Any], Any]] = {
    "bins": _bins,
    "class_map": lambda text: _json_object(text, "--class-map"),
    "classes": _classes,
    "columns": _columns,
    "measures": _words,
    "preprocessing": _preprocessing,
    "top_k": lambda text: _numbers(text, int, "--top-k", "numbers such as 1,5"),
}


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a path
        return False


def _json_object(text: str, option: str) -> dict[str, Any]:
    """Return an object from JSON or a JSON file."""
    if not text.lstrip().startswith("{"):
        text = _read(text, option)
    found = read_json(text or "{}", option)
    if not isinstance(found, dict):
        raise CommandFailed(f"{option}: expected a JSON object, such as {_EXAMPLES[option]}")
    return found


def _read(path: str, option: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandFailed(f"{option}: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"{option}: {path} is not text in UTF-8") from error
