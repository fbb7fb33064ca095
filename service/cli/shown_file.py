"""Show a file in the browser of whoever is at this machine."""

import os
import sys
import webbrowser
from pathlib import Path

import typer

# Of which one is set where there is a screen; a browser may be named where there is none.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def show_file(path: Path) -> None:
    """Say where a file is, and open it in a browser if there is one to be seen."""
    typer.echo(str(path))
    if _is_screen() and not webbrowser.open(path.resolve().as_uri()):
        typer.echo("No browser was found to show it.", err=True)


def _is_screen() -> bool:
    """Tell whether a browser would be seen: without a screen one of text takes the terminal."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, _SCREENS))
