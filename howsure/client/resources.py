"""Calibrations and evaluations, as the service represents them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, Self, TypeAlias

from howsure.client.frames import Frame, data_frame, html_table
from howsure.client.records import Record, record_of
from howsure.remedies import remedy_for_further_set, remedy_of
from howsure.remedy_texts import Remedy

FINISHED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True)
class Progress(Record):
    """The progress of a job; rate and remaining time are of the current stage, None if unknown."""

    status: str
    stage: str | None = None
    done: int = 0
    total: int = 0
    rows_per_second: float | None = None
    eta_seconds: float | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read ``status`` and ``progress`` of a job or of an event."""
        return record_of(cls, document.get("progress") or {}, status=document["status"])


@dataclass(frozen=True)
class Finding(Record):
    """A finding with its figures and what fixes it; docs/findings.md explains its code."""

    code: str
    level: str
    message: str
    figures: Mapping[str, float | list[int] | list[float]]
    remedy: Remedy


@dataclass(frozen=True, repr=False)
class Calibration(Record):
    """A calibration: the job and its results. ``resource`` is the JSON of the service.

    Attributes
    ----------
    warnings
        Notes, in sentences.
    findings
        What looks wrong, with its level: ``warning`` or ``notice``.
    accuracy
        Share of the calibration set for which each event holds, by k; None until it has succeeded.
    serve
        The uncertainty measure that serves each event, by k; None until it has succeeded.
    """

    id: str
    name: str
    version: int
    status: str
    promoted: bool
    accuracy: Mapping[int, float] | None
    serve: Mapping[int, str] | None
    warnings: tuple[str, ...]
    findings: tuple[Finding, ...]
    classes: tuple[str, ...]
    resource: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of the service."""
        reference = f"{document['name']}@{document['version']}"
        findings = [
            record_of(Finding, finding, remedy=remedy_of(finding, document, reference))
            for finding in document.get("findings", ())
        ]
        classes = tuple(document["config"].get("classes") or ())
        return record_of(cls, document, findings=tuple(findings), classes=classes)

    @property
    def reference(self) -> str:
        """The reference ``name@version``."""
        return f"{self.name}@{self.version}"

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended, with or without success."""
        return self.status in FINISHED

    def __repr__(self) -> str:
        error = self.resource.get("error")
        said = [self.reference, self.status if error is None else f"failed: {error['title']}"]
        said += [f"Top-{k} {share:.3f}" for k, share in (self.accuracy or {}).items()]
        said += [f"{found.level}: {found.code}" for found in self.findings]
        said += [f"{len(self.warnings)} notes"] if self.warnings else []
        return f"Calibration({', '.join(said)})"

    def _repr_html_(self) -> str:
        return CalibrationList([self])._repr_html_() + _html_texts(self)


def _html_texts(calibration: Calibration) -> str:
    error = calibration.resource.get("error")
    items = [] if error is None else [escape(f"{error['title']}: {error['detail']}")]
    for found in calibration.findings:
        said = f"{found.level} ({found.code}): {found.message} {found.remedy.text}"
        code = f"<pre>{escape(found.remedy.code)}</pre>" if found.remedy.code else ""
        items.append(escape(said) + code)
    items += [escape(f"note: {note}") for note in calibration.warnings]
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


class CalibrationList(list[Calibration]):
    """Calibrations, in a list that notebooks show as a table."""

    def to_pandas(self) -> Frame:
        """Return a data frame with a row each.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self._columns())

    def _repr_html_(self) -> str:
        columns = {
            name: [_cell(value) for value in values] for name, values in self._columns().items()
        }
        return html_table(columns, "Calibrations")

    def _columns(self) -> dict[str, list[Any]]:
        events = dict.fromkeys(k for one in self for k in one.accuracy or {})
        accuracy = {
            f"top{k}_accuracy": [(one.accuracy or {}).get(k) for one in self] for k in events
        }
        return {
            "reference": [one.reference for one in self],
            "status": [one.status for one in self],
            "promoted": [one.promoted for one in self],
            **accuracy,
            "findings": [", ".join(found.code for found in one.findings) for one in self],
            "created_at": [one.resource["created_at"] for one in self],
            "id": [one.id for one in self],
        }


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)


SetRole: TypeAlias = Literal["traffic", "stress"]


@dataclass(frozen=True)
class Evaluation(Record):
    """An evaluation of a further set; ``resource`` is the JSON of the service.

    ``result`` contains scores and shift, see docs/http.md; None until it succeeded.
    """

    id: str
    name: str
    status: str
    labelled: bool
    role: SetRole
    type: str | None
    intensity: float | None
    result: Mapping[str, Any] | None = field(repr=False)
    resource: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def shifted(self) -> bool | None:
        """Whether the set differs from the calibration set; None until it succeeded."""
        return None if self.result is None else bool(self.result["shifted"])

    @property
    def findings(self) -> Sequence[Finding]:
        """What looks wrong with the set, such as a column in another unit.

        A set that was prepared in another way need not be `shifted`: look at both.
        """
        findings = () if self.result is None else self.result.get("findings", ())
        return tuple(
            record_of(Finding, finding, remedy=remedy_for_further_set(finding, {}))
            for finding in findings
        )

    @property
    def sentence(self) -> str | None:
        """`shifted` as a sentence."""
        return None if self.result is None else str(self.result["sentence"])


Reference: TypeAlias = Calibration | str


def reference_of(calibration: Reference) -> str:
    """Return the id or the reference of a calibration."""
    return calibration.id if isinstance(calibration, Calibration) else calibration
