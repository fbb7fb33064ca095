"""The command that repeats a calibration."""

import json
import shlex
from collections.abc import Container, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

MOST_CHARACTERS = 2000  # of options that are written out
# Options whose value is a word or a number, by key of the configuration.
PLAIN_OPTIONS = ("name", "bins", "lookup", "decision_threshold")
FILES, OPTIONS = "files", "options"
# Words of a command by parameter of `howsure calibrate`: its ``files``, and options with values.
TypedWords: TypeAlias = Mapping[str, Sequence[str]]


def calibrate_command(
    about: Mapping[str, Any], *, without: Container[str] = (), typed: TypedWords | None = None
) -> str:
    """Return the command with the files and the options that were typed or sent.

    ``about`` has ``config`` and ``data`` of the calibration. ``data`` has the names of the files,
    and the keys of the configuration that were sent; without names, the files are called as their
    parts. Keys in ``without`` are left out. ``typed`` is used instead, if the caller knows it.
    """
    if typed is not None:
        kept = [words for name, words in typed.items() if name not in without]
        return shlex.join(["howsure", "calibrate", *chain.from_iterable(kept)])
    data, config = about["data"], about["config"]
    files = data.get(FILES, {})
    default = ["model.onnx"] if data["kind"] == "inputs" else []
    models = [path_word(name) for name in files.get("model") or default]
    calibration = set_file(about)
    words = ["howsure", "calibrate", *(models if len(models) == 1 else ()), calibration]
    if len(models) > 1:
        words += [word for name in models for word in ("--model", name)]
    for part in ("labels", "evaluation", "evaluation_labels"):
        if part in files and part not in without:
            words += [f"--{part.replace('_', '-')}", path_word(files[part])]
    return shlex.join(words + _options(config, data.get(OPTIONS, ["preprocessing"]), without))


def _options(config: Mapping[str, Any], sent: Container[str], without: Container[str]) -> list[str]:
    keys = [key for key in config if key in sent and key not in without]
    given = {key: config[key] for key in keys if config[key] is not None}
    words = []
    for key in PLAIN_OPTIONS:
        if key in given:
            words += [f"--{key.replace('_', '-')}", str(given.pop(key))]
    if "preprocessing" in given:
        words += ["--preprocessing", json.dumps(given.pop("preprocessing"))]
    if given:
        text = json.dumps(given, ensure_ascii=False)
        words += ["--config", text if len(text) <= MOST_CHARACTERS else "config.json"]
    return words


def set_file(about: Mapping[str, Any]) -> str:
    """Return what a command calls the calibration set, by the name that was sent."""
    data = about["data"]
    sent = data.get(FILES, {}).get("calibration")
    return path_word(sent or f"calibration.{data.get('format', 'npz')}")


def path_word(name: str) -> str:
    """Return a file name that no command takes for an option."""
    return f"./{name}" if name.startswith("-") else name
