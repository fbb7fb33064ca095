"""The drawing process: reads figures as JSON lines and writes pictures as JSON lines.

Vega runs in V8, which holds Python's global lock while it draws and never returns memory. So it has
a process of its own, in a sandbox. That process reads only its standard input and the specs of this
package, and no spec can load a URL.
"""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import vl_convert

from service.child.lockdown.lock_down import lock_down_drawing

SPECS = Path(__file__).parent / "specs"
CONFIG = SPECS / "config.json"  # shared by all specs
NICENESS = 5  # predictions come first


def main() -> None:
    """Draw until standard input ends."""
    os.nice(NICENESS)
    lock_down_drawing()
    for path in SPECS.glob("*.json"):
        if path != CONFIG:
            compiled(path.stem)
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer each line."""
    for line in asked:
        figure = json.loads(line)
        try:
            answer = {"svg": draw(figure)}
        except (ValueError, KeyError) as problem:
            answer = {"problem": str(problem)}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def draw(figure: dict[str, Any]) -> str:
    """Return the picture of a figure, its colours CSS variables.

    Raises
    ------
    ValueError
        If Vega cannot draw it.
    """
    spec = filled(compiled(figure["chart"]), figure)
    return str(vl_convert.vega_to_svg(spec, allowed_base_urls=[]))


@functools.cache
def compiled(chart: str) -> dict[str, Any]:
    """Return the Vega spec that a chart's Vega-Lite compiles to."""
    spec = _read(SPECS / f"{chart}.json") | {"config": _read(CONFIG)}
    return dict(vl_convert.vegalite_to_vega(spec))


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def filled(spec: dict[str, Any], figure: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with the rows and parameters of a figure."""
    data = [
        {**source, "values": figure["data"][source["name"]]}
        if source["name"] in figure["data"]
        else source
        for source in spec["data"]
    ]
    signals = [
        {**signal, "value": figure["parameters"][signal["name"]]}
        if signal["name"] in figure["parameters"]
        else signal
        for signal in spec.get("signals", [])
    ]
    return {**spec, "data": data, "signals": signals}


if __name__ == "__main__":
    main()
