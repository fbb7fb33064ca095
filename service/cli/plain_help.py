"""Help without `<bool>` beside flags and without braces around required arguments."""

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup


class _PlainHelp:
    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer exports neither type
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of typer's class
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401 - the same
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]  # the same
        return [_without_braces(piece) for piece in pieces]


def _without_braces(piece: str) -> str:
    found = re.fullmatch(r"\{(.*)\}(\.\.\.)?", piece)
    if found is None:
        return piece
    # A name of several words, such as `[MODEL] CALIBRATION`, shows the number of arguments itself.
    return found[1] if " " in found[1] else found[1] + (found[2] or "")


class Command(_PlainHelp, TyperCommand):
    """A subcommand."""


class Commands(_PlainHelp, TyperGroup):
    """A group of subcommands."""
