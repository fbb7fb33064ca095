"""Reports and model cards as Markdown; untrusted text is escaped for Markdown and YAML."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from msgspec.structs import asdict

from howsure.numbers import confidence, share
from howsure.printable import escaped
from howsure.remedies import remedy_of
from howsure.remedy_texts import Remedy
from howsure.report.event import ComparedMeasure, Event
from howsure.report.figures import COMPARED
from howsure.report.findings import DocumentedFinding
from howsure.report.further_sets import accepted_in_words
from howsure.report.measure import Baseline, Learned
from howsure.report.parts import Phase
from howsure.report.report import Report
from howsure.report.words.learned import classes_sentence, learned_sentence
from howsure.statistics.measures.scale import scale_of

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")
# An underscore within a word is no markup, nor is "<" before a number: names and "p < 0.01" stay.
_MARKUP_BUT_NAMES = re.compile(r"([\\`*{}\[\]#|~]|<(?=[A-Za-z/!?])|^>|(?<![^\W_])_|_(?![^\W_]))")


def number(value: float | None) -> str:
    """Return a score with four decimals; empty for None."""
    return "" if value is None else f"{value:.4f}"


def edge(value: float | None) -> str:
    """Return an uncertainty or a share with six significant digits; empty for None."""
    return "" if value is None else f"{value:.6g}"


def plain(text: str) -> str:
    """Return text with all Markdown markup escaped."""
    return _MARKUP.sub(r"\\\1", text)


def escape(text: str) -> str:
    """Return text with Markdown markup escaped, except in names of measures."""
    return _MARKUP_BUT_NAMES.sub(r"\\\1", text)


_SHORT = 0xFFFF


def yaml_text(text: str) -> str:
    """Return a double-quoted YAML scalar with invisible characters escaped."""
    return f'"{"".join(map(_escaped, text))}"'


def one_line(text: str) -> str:
    """Return text on one line with Markdown markup and entities escaped."""
    return plain(escaped(" ".join(text.split()))).replace("&", r"\&")


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code <= _SHORT else f"\\U{code:08x}"


CARD_SCORES = ("ece_15", "brier", "nll", "auroc")
PHASES: tuple[Phase, ...] = ("cross_validation", "evaluation")
_BACKTICKS = re.compile("`+")


def report_markdown(report: Report) -> str:
    """Return the report as a Markdown document: every event, the model, further sets, warnings."""
    return _render("report.md", report)


def model_card(report: Report) -> str:
    """Return a model card: Markdown with YAML front matter, as the Hugging Face Hub reads it."""
    return _render("model_card.md", report)


def _render(template: str, report: Report) -> str:
    about = asdict(report.provenance)

    def remedy(finding: DocumentedFinding) -> Remedy:
        return remedy_of(vars(finding), about, report.reference)

    context = asdict(report) | {"remedy_of": remedy}
    return _TEMPLATES.get_template(template).render(context).rstrip("\n") + "\n"


def _escape_untrusted(value: object) -> object:
    """Escape every string that no filter has marked as safe; None shows nothing."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return Markup(escape(escaped(value)))  # noqa: S704 - Markdown, not HTML
    return value


def _code(text: str) -> Markup:
    """Return a code span, which also works in a table cell."""
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    pad = " " if len(fence) > 1 else ""
    shown = text.replace("|", r"\|")
    return Markup(f"{fence}{pad}{shown}{pad}{fence}")  # noqa: S704 - Markdown, not HTML


def _phases(baselines: Mapping[str, Baseline]) -> list[str]:
    """Return the phases in which baselines were compared with the served bins."""
    return [
        phase for phase in PHASES if any(one.difference.get(phase) for one in baselines.values())
    ]


def _metrics(event: Event) -> Iterator[tuple[str, float]]:
    """Yield the scores of the served measure that have a value: of the evaluation set if any."""
    served, accuracy = event.measures[event.served], event.figures.accuracy
    scores = served.evaluation or {name: one.mean for name, one in served.scores.items()}
    values = {"accuracy": None if accuracy is None else accuracy.value}
    values |= {name: scores.get(name) for name in CARD_SCORES}
    yield from ((name, value) for name, value in values.items() if value is not None)


def _learned(learned: Learned, names: Sequence[str]) -> str:
    """Return what the learned measure learned in two sentences."""
    return f"{learned_sentence(learned)} {classes_sentence(learned, names)}"


def _has_evaluation(rows: list[ComparedMeasure]) -> bool:
    return any(getattr(row, score).evaluation is not None for row in rows for score in COMPARED)


def _safe(function: Any) -> Any:  # noqa: ANN401 - any filter
    """Mark the result of a filter as safe Markdown."""
    return lambda value: Markup(function(value))  # noqa: S704 - Markdown, not HTML


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    # Markdown, not HTML: `finalize` marks as safe what it has escaped.
    autoescape=True,
    finalize=_escape_untrusted,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {
    "scores": (
        *("ece", "ece_15", "aece", "amce", "brier", "nll"),
        *("auroc", "aurc", "eor", "conditional_entropy"),
    ),
    "further_scores": ("ece", "brier", "nll", "auroc"),
    "compared_scores": COMPARED,
    "card_scores": CARD_SCORES,
    "most_classes": 50,
    "scale_of": scale_of,
}
_TEMPLATES.filters |= {
    "number": number,
    "edge": edge,
    "share": share,
    "confidence": confidence,
    "signed": "{:+.5f}".format,
    "short": lambda value: "" if value is None else f"{value:.3g}",
    "phases": _phases,
    "headings": lambda phases: [
        f"{score}, {phase.replace('_', '-')}" for phase in phases for score in ("nll", "brier")
    ],
    "has_evaluation": _has_evaluation,
    "targets": lambda cells: [
        "the rest" if cell.target is None else f"at least {share(cell.target)}" for cell in cells
    ],
    "accepted_in_words": accepted_in_words,
    "metrics": _metrics,
    "learned": _learned,
    "rule": _safe(lambda columns: "|" + "---|" * columns),
    "code": _code,
    "one_line_code": lambda text: _code("; ".join(text.splitlines())),
    "plain": _safe(plain),
    "line": _safe(one_line),
    "yaml": _safe(yaml_text),
    "json": _safe(json.dumps),
    "indented": _safe(lambda found: json.dumps(found, indent=2)),
}
