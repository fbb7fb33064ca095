"""The configuration that a command was given."""

import json
from pathlib import Path
from typing import Any

from service.cli.failure import CommandFailed

_EXAMPLES = {
    "--config": '{"bins": 10}',
    "--class-map": '{"cat": 0, "dog": 1}',
    "--preprocessing": '{"resize": 256, "crop": 224}',
}


def given_config(
    text: str | None,
    *,
    bins: str | None,
    preprocessing: str | None = None,
    class_map: str | None = None,
    **shortcuts: str | None,
) -> dict[str, Any]:
    """Return the configuration: JSON or a file that holds it, then what options say.

    ``preprocessing`` is the name of a preset, or as ``class_map`` JSON or a file that holds it.

    Raises
    ------
    CommandFailed
        If the file cannot be read, or holds no JSON object.
    """
    config = {} if text is None else _json_object(text, "--config")
    if bins is not None:
        config["bins"] = int(bins) if bins.isascii() and bins.isdigit() else bins
    if preprocessing is not None:
        is_name = preprocessing.isidentifier() and not Path(preprocessing).exists()
        config["preprocessing"] = (
            preprocessing if is_name else _json_object(preprocessing, "--preprocessing")
        )
    if class_map is not None:
        config["class_map"] = _json_object(class_map, "--class-map")
    return config | {key: value for key, value in shortcuts.items() if value is not None}


def _json_object(text: str, option: str) -> dict[str, Any]:
    """Read JSON, or a file that holds it."""
    if not text.lstrip().startswith("{"):
        text = _read(text, option)
    try:
        found = json.loads(text or "{}")
    except RecursionError as error:
        raise CommandFailed(f"{option}: the lists are nested too deeply") from error
    except ValueError as error:
        raise CommandFailed(f"{option} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CommandFailed(f"{option}: expected a JSON object, such as {_EXAMPLES[option]}")
    return found


def _read(path: str, option: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{option}: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"{option}: {path} is no text in UTF-8") from error
