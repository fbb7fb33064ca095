"""Keep in docs/images the pictures of pages that the README shows, out of those a browser took.

    make pictures

They are the tops of the full pages that ``tests/web/pages`` looks at, in few colours, so that a
clone stays small.
"""

# ruff: noqa: INP001, T201 -- a script that stands by itself and prints what it keeps

import argparse
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 1280
COLOURS = 160
# The picture that is taken, the name that is kept, and how many pixels of its height.
KEPT = {
    "upload-1280-light.png": ("home.png", 920),
    "report-1280-light.png": ("report.png", 1230),
    "operating_point-1280-light.png": ("operating-point.png", 1100),
    "try-1280-light.png": ("try.png", 700),
}


def main() -> None:
    """Cut, reduce and write each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("taken", type=Path, help="where the browser's pictures are")
    taken = parser.parse_args().taken
    for name, (kept, height) in KEPT.items():
        with Image.open(taken / name) as whole:
            top = whole.convert("RGB").crop((0, 0, WIDTH, min(height, whole.height)))
        # The other method makes one brown of the few orange points.
        reduced = top.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(IMAGES / kept, optimize=True)
        print(f"{kept}: {(IMAGES / kept).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
