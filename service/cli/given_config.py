"""The configuration that a command was given."""

import json
from pathlib import Path
from typing import Any

from service.cli.failure import CommandFailed


def given_config(text: str | None, *, bins: str | None, **shortcuts: str | None) -> dict[str, Any]:
    """Return the configuration: JSON or a file that holds it, then what options say.

    Raises
    ------
    CommandFailed
        If the file cannot be read, or holds no JSON object.
    """
    config = _config(text)
    if bins is not None:
        config["bins"] = int(bins) if bins.isascii() and bins.isdigit() else bins
    return config | {key: value for key, value in shortcuts.items() if value is not None}


def _config(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if not text.lstrip().startswith("{"):
        text = _read(text)
    try:
        config = json.loads(text or "{}")
    except RecursionError as error:
        raise CommandFailed("--config: the lists are nested too deeply") from error
    except ValueError as error:
        raise CommandFailed(f"--config is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise CommandFailed('--config: expected a JSON object, such as {"bins": 10}')
    return config


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"--config: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"--config: {path} is no text in UTF-8") from error
