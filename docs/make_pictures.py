"""Draw docs/images/before_after.svg: the model's softmax and Howsure's probability, with hit rates.

    python docs/make_pictures.py [--output FILE]

Calibrates the digits example (examples/digits) on its calibration set and evaluates both on the
evaluation set. Prints the drawn numbers; the same inputs give the same bytes.
"""

# ruff: noqa: INP001, T201 -- a stand-alone script that prints its numbers

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import BaselineFit, MeasureFit
from howsure.statistics.label_model.recorded import with_learned
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import Records

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
PICTURE = ROOT / "docs" / "images" / "before_after.svg"
N_GROUPS = 10
SAME_PLACE = 0.005  # groups that say the same to half a point would hide each other

WIDTH, HEIGHT = 920, 540
PANEL_TOP, SIDE = 108, 340
LEAST, LARGEST = 0.4, 1.0
TICKS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NEAR_CERTAINTY = 0.985
NEAR_TOP = 0.95  # a dot so high has its words above the panel, where nothing is in their way
WORDS = 95  # as wide as they are
FOOTNOTE = (
    "600 handwritten digits that no fit has seen. Dashed: says what comes true. "
    "Bars: the 95 % intervals served."
)

STYLE = """
  .card { fill: #ffffff; stroke: #d1d9e0 }
  .panel { fill: #f6f8fa }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .ideal { stroke: #818b98; stroke-width: 1.5; stroke-dasharray: 5 4 }
  text { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif;
         font-size: 13px; fill: #59636e }
  .halo { paint-order: stroke; stroke: #f6f8fa; stroke-width: 4px }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .said { font-weight: 600; fill: #1f2328 }
  .model { fill: #cf222e; stroke: #cf222e }
  .howsure { fill: #0969da; stroke: #0969da }
  .gap { stroke-width: 2; stroke-dasharray: 2 3 }
  .interval { stroke-width: 7; stroke-opacity: 0.3; stroke-linecap: round }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d }
    .panel { fill: #151b23 }
    .halo { stroke: #151b23 }
    .grid { stroke: #3d444d }
    .ideal { stroke: #9198a1 }
    text { fill: #9198a1 }
    .title, .said { fill: #f0f6fc }
    .model { fill: #ff7b72; stroke: #ff7b72 }
    .howsure { fill: #58a6ff; stroke: #58a6ff }
  }
"""


@dataclass(frozen=True)
class Group:
    """Answers of about the same probability: that probability, and their hit rate."""

    count: int
    said: float
    right: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """One half of the picture."""

    left: int
    kind: str
    title: str
    subtitle: str
    x_axis: str
    groups: list[Group]

    def x(self, value: float) -> float:
        """Return the horizontal position of a value."""
        return self.left + SIDE * (value - LEAST) / (LARGEST - LEAST)

    def y(self, value: float) -> float:
        """Return the vertical position of a value."""
        return PANEL_TOP + SIDE * (LARGEST - value) / (LARGEST - LEAST)


def read_records(part: str, session: onnxruntime.InferenceSession) -> Records:
    """Run the model on one set of the example."""
    with np.load(DIGITS / f"{part}.npz") as arrays:
        images, labels = arrays["inputs"], arrays["labels"]
    (logits,) = session.run(["logits"], {"inputs": images.astype(np.float32)})
    return build_records(logits, labels, tie_keys=tie_keys(images, 0), top_k=(1,))


def merged(parts: Iterable[np.ndarray], said: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    """Join the rows of parts whose dots or words would hide each other; parts rise."""
    groups: list[np.ndarray] = []
    for rows in parts:
        is_same = groups and said[rows].mean() - said[groups[-1]].mean() < SAME_PLACE
        if is_same or (groups and right[rows].mean() >= NEAR_TOP <= right[groups[-1]].mean()):
            groups[-1] = np.concatenate([groups[-1], rows])
        else:
            groups.append(rows)
    return groups


def model_groups(records: Records) -> list[Group]:
    """Group answers into equal numbers by the softmax maximum."""
    said, right = records.raw_probability(1), records.hits(1)
    order = np.lexsort((records.tie_key, said))
    groups = merged(np.array_split(order, N_GROUPS), said, right)
    return [Group(len(m), float(said[m].mean()), float(right[m].mean())) for m in groups]


def howsure_groups(fit: MeasureFit, records: Records) -> list[Group]:
    """Group answers by the bin; say the mean of the served probabilities and their intervals."""
    answers, right = fit.table.look_up(records.uncertainty[fit.column]), records.hits(1)
    bins = (np.flatnonzero(answers.bin == index) for index in np.unique(answers.bin)[::-1])
    groups = []
    for rows in merged(bins, answers.probability, right):
        said, lower, upper = (
            float(values[rows].mean())
            for values in (answers.probability, answers.lower, answers.upper)
        )
        groups.append(Group(len(rows), said, float(right[rows].mean()), (lower, upper)))
    return groups


def percent(value: float) -> str:
    """Format a share in whole percent, and in tenths of a percent near 100 %."""
    if value < NEAR_CERTAINTY:
        return f"{100 * value:.0f} %"
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def off_by(fit: MeasureFit | BaselineFit) -> str:
    """Describe the calibration error on the evaluation set."""
    ece = (fit.evaluation or {})["ece_15"] or 0.0
    return f"off by {100 * ece:.1f} points on average (ECE {ece:.3f})"


def draw_panel(panel: Panel) -> Iterator[str]:
    """Yield the elements of one panel."""
    bottom, right = PANEL_TOP + SIDE, panel.left + SIDE
    yield f'<text class="title" x="{panel.left}" y="46">{panel.title}</text>'
    yield f'<text x="{panel.left}" y="68">{panel.subtitle}</text>'
    yield (f'<rect class="panel" x="{panel.left}" y="{PANEL_TOP}" width="{SIDE}" height="{SIDE}"/>')
    for tick in TICKS:
        x, y = panel.x(tick), panel.y(tick)
        yield f'<path class="grid" d="M{x:.1f} {PANEL_TOP}V{bottom}M{panel.left} {y:.1f}H{right}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 19}" text-anchor="middle">{percent(tick)}</text>'
        yield f'<text x="{panel.left - 8}" y="{y + 4:.1f}" text-anchor="end">{percent(tick)}</text>'
    yield f'<path class="ideal" d="M{panel.left} {bottom}L{right} {PANEL_TOP}"/>'
    at = f"translate({panel.left + SIDE / 2} {bottom + 44})"
    yield f'<text transform="{at}" text-anchor="middle">{panel.x_axis}</text>'
    at = f"translate({panel.left - 56} {PANEL_TOP + SIDE / 2}) rotate(-90)"
    yield f'<text transform="{at}" text-anchor="middle">how often it was right</text>'
    for group in panel.groups:
        yield from draw_group(panel, group)


def draw_group(panel: Panel, group: Group) -> Iterator[str]:
    """Yield a dot, its interval or its distance from the diagonal, and its text."""
    x, y = panel.x(group.said), panel.y(group.right)
    if group.interval is None:
        yield f'<path class="{panel.kind} gap" d="M{x:.1f} {panel.y(group.said):.1f}V{y:.1f}"/>'
    else:
        lower, upper = (panel.y(max(end, LEAST)) for end in group.interval)
        yield f'<path class="{panel.kind} interval" d="M{x:.1f} {lower:.1f}V{upper:.1f}"/>'
    yield f'<circle class="{panel.kind}" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    yield from label_group(panel, group, x, y)


def label_group(panel: Panel, group: Group, x: float, y: float) -> Iterator[str]:
    """Yield the text beside the dot at (x, y), clear of line and interval."""
    words = [f"says {percent(group.said)}", f"right {percent(group.right)}"]
    if group.right > NEAR_TOP:
        at = f'x="{panel.left + SIDE}" y="{PANEL_TOP - 12}" text-anchor="end"'
        said = f'<tspan class="said">{", ".join(words)}</tspan>'
        yield f"<text {at}>{said}, {group.count} answers</text>"
        return
    if group.interval is None:
        x, y, anchor = min(x, panel.left + SIDE - 42), y + 24, "middle"
    else:
        # Left of the dot, unless the words would leave the panel.
        is_far_left = x - panel.left < WORDS
        x, y, anchor = (x + 14, y + 4, "start") if is_far_left else (x - 14, y - 22, "end")
    for row, text in enumerate([*words, f"{group.count} answers"]):
        kind = "halo said" if text in words else "halo"
        at = f'x="{x:.1f}" y="{y + 17 * row:.1f}" text-anchor="{anchor}"'
        yield f'<text class="{kind}" {at}>{text}</text>'


def draw(panels: list[Panel]) -> str:
    """Return the picture."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{' '.join(f'{p.title}: {p.subtitle}.' for p in panels)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12"/>',
    ]
    for panel in panels:
        lines.extend(draw_panel(panel))
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 22}" text-anchor="middle">{FOOTNOTE}</text>')
    return "\n".join([*lines, "</svg>", ""])


def make_panels() -> list[Panel]:
    """Calibrate, evaluate, and return the two panels."""
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(DIGITS / "model.onnx", providers=providers)
    calibration, evaluation = (read_records(p, session) for p in ("calibration", "evaluation"))
    options = FitOptions(top_k=(1,), bins=N_GROUPS)
    event = fit_calibration(calibration, options=options, evaluation=evaluation).events[1]
    served = event.measures[event.served]
    formulas = {} if event.learned is None else {1: event.learned.model}
    return [
        Panel(
            left=90,
            kind="model",
            title="Before: the model is too sure of itself",
            subtitle=off_by(event.baselines["raw_softmax"]),
            x_axis="how sure its softmax says it is",
            groups=model_groups(evaluation),
        ),
        Panel(
            left=550,
            kind="howsure",
            title="After: what Howsure says comes true",
            subtitle=off_by(served),
            x_axis="how sure Howsure says it is",
            groups=howsure_groups(served, with_learned(evaluation, formulas)),
        ),
    ]


def main() -> None:
    """Draw the picture and print its numbers."""
    parser = argparse.ArgumentParser(description="Draw what a model and Howsure say of a model.")
    parser.add_argument("--output", type=Path, default=PICTURE)
    output, panels = parser.parse_args().output, make_panels()
    for panel in panels:
        print(f"{panel.title}: {panel.subtitle}")
        for group in panel.groups:
            print(f"  {group.count} answers: {group.said:.3f} {group.right:.3f} {group.interval}")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(draw(panels), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
