"""Copy the README's pictures of pages from the browser tests to docs/images.

    make pictures

They are the tops of the full pages that ``tests/web/pages`` captures, in few colours, so that a
clone stays small.
"""

# ruff: noqa: INP001, T201 -- a stand-alone script that prints its files

import argparse
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 1280
COLOURS = 160
# Captured picture, file name, and height in pixels.
KEPT = {
    "upload-1280-light.png": ("home.png", 550),
    "report-1280-light.png": ("report.png", 1490),
    "operating_point-1280-light.png": ("operating-point.png", 1100),
    "try-1280-light.png": ("try.png", 700),
}


def main() -> None:
    """Crop, scale and write each picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("taken", type=Path, help="where the browser's pictures are")
    taken = parser.parse_args().taken
    for name, (kept, height) in KEPT.items():
        with Image.open(taken / name) as whole:
            top = whole.convert("RGB").crop((0, 0, WIDTH, min(height, whole.height)))
        # The other method turns the few orange points brown.
        reduced = top.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(IMAGES / kept, optimize=True)
        print(f"{kept}: {(IMAGES / kept).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
