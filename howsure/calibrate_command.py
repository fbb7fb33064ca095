"""The command that repeats a calibration."""

import json
import shlex
from collections.abc import Container, Mapping
from typing import Any

MOST_CHARACTERS = 2000  # of options that are written out
# Options whose value is a word or a number, by key of the configuration.
PLAIN_OPTIONS = {"name": "--name", "bins": "--bins", "lookup": "--lookup"}
FILES, OPTIONS = "files", "options"


def calibrate_command(about: Mapping[str, Any], *, without: Container[str] = ()) -> str:
    """Return the command with the files and the options that were sent.

    ``about`` has ``config`` and ``data`` of the calibration. ``data`` has the names of the files,
    and the keys of the configuration that were sent; without names, the files are called as their
    parts. Keys in ``without`` are left out.
    """
    data, config = about["data"], about["config"]
    files = data.get(FILES, {})
    default = ["model.onnx"] if data["kind"] == "inputs" else []
    models = [_path(name) for name in files.get("model") or default]
    calibration = _path(files.get("calibration") or f"calibration.{data.get('format', 'npz')}")
    words = ["howsure", "calibrate", *(models if len(models) == 1 else ()), calibration]
    if len(models) > 1:
        words += [word for name in models for word in ("--model", name)]
    for part in ("labels", "evaluation", "evaluation_labels"):
        if part in files and part not in without:
            words += [f"--{part.replace('_', '-')}", _path(files[part])]
    return shlex.join(words + _options(config, data.get(OPTIONS, ["preprocessing"]), without))


def _options(config: Mapping[str, Any], sent: Container[str], without: Container[str]) -> list[str]:
    keys = [key for key in config if key in sent and key not in without]
    given = {key: config[key] for key in keys if config[key] is not None}
    words = []
    for key, option in PLAIN_OPTIONS.items():
        if key in given:
            words += [option, str(given.pop(key))]
    if "preprocessing" in given:
        words += ["--preprocessing", json.dumps(given.pop("preprocessing"))]
    if given:
        text = json.dumps(given, ensure_ascii=False)
        words += ["--config", text if len(text) <= MOST_CHARACTERS else "config.json"]
    return words


def _path(name: str) -> str:
    """Return a file name that no command takes for an option."""
    return f"./{name}" if name.startswith("-") else name
