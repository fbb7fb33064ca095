"""The settings as text, for the help of ``howsure serve``."""

from service.settings import Settings


def settings_help() -> str:
    """List each setting's variable, default and meaning."""
    # \b keeps the lines as they are; without it they would be joined to one paragraph.
    lines = ["Settings are environment variables, or lines of a `.env` file:", "", "\b"]
    for name, found in Settings.model_fields.items():
        default = "" if found.default in ("", None) else f" (default {found.default})"
        lines += [f"HOWSURE_{name.upper()}{default}", f"  {found.description}"]
    return "\n".join(lines)
