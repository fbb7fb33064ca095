"""The report of a fit in a program, without a service that stores it."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from howsure.report.assembly import assembled_event, with_summary
from howsure.report.confusion import AcceptanceRule, count_errors, with_confusion
from howsure.report.event import FittedEvent
from howsure.report.findings import DocumentedFinding, documented
from howsure.report.fitted import (
    fitted_analysis,
    fitted_baselines,
    fitted_curves,
    fitted_mislabelled,
    fitted_oracle,
    fitted_verdict,
)
from howsure.report.measure import Measure
from howsure.report.parts import FIRST
from howsure.report.plain_parts import plain_part
from howsure.report.report import About, Provenance, Report
from howsure.report.words.fit_notes import fit_notes
from howsure.report.words.learned import learned_facts
from howsure.statistics.errors_by_class import LabelledSamples
from howsure.statistics.findings import run_checks
from howsure.statistics.findings.evidence import RecordedSet
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit, Fit
from howsure.statistics.measures import LEARNED
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records


class FittedSets(NamedTuple):
    """What was fitted to: the records of the sets, and what their outputs are.

    Those of the calibration set have the learned measure, as it was cross-fitted.
    """

    calibration: Records
    evaluation: Records | None
    kind: Literal["inputs", "logits", "probabilities", "pairs"]
    classes: Sequence[str]


def fit_report(
    fit: Fit, sets: FittedSets, options: FitOptions, *, notes: Sequence[str] = ()
) -> Report:
    """Return the report of a fit: what the service shows of the same outputs.

    ``notes`` come before those on the fit.
    There are no digests.
    """
    records, config = sets.calibration, _config(options, sets.classes)
    report = Report(
        calibration=About(id="", name="calibrator", version=1, created_at=None, finished_at=None),
        events={
            str(k): assembled_event(
                str(k), _fitted_event(event, records, options), fit.model_scores, config, {}
            )
            for k, event in sorted(fit.events.items())
        },
        model_scores=fit.model_scores,
        operating_point=None,
        earlier_operating_point=None,
        export=None,
        evaluations=[],
        warnings=[*notes, *fit_notes(fit, records, options)],
        findings=_findings(sets, options),
        provenance=Provenance(
            data=_data(sets), model=None, config=config, versions={}, refit_of=None, digest=None
        ),
    )
    report = with_summary(report)
    if FIRST not in report.events or sets.kind == "pairs":
        return report
    column, rule = fit.events[1].measures[fit.events[1].served].column, AcceptanceRule.of(report)
    errors = count_errors(
        [records],
        LabelledSamples.of([records], column),
        column,
        rule.threshold,
        n_classes=len(sets.classes),
        level=options.interval.level,
    )
    return with_confusion(report, rule, errors)


def _fitted_event(event: EventFit, records: Records, options: FitOptions) -> FittedEvent:
    return FittedEvent(
        accuracy=event.accuracy,
        served=event.served,
        verdict=fitted_verdict(event, options.folds),
        measures={name: _measure(event, name) for name in event.measures},
        baselines=fitted_baselines(event),
        oracle=fitted_oracle(event),
        mislabelled=fitted_mislabelled(event, records),
    )


def _measure(event: EventFit, name: str) -> Measure:
    fit, analysis = event.measures[name], fitted_analysis(event, name)
    learned = None
    if name == LEARNED and event.learned is not None:
        learned = learned_facts(to_plain(event.learned.model), analysis.learned)
    return Measure.of(
        fit.table,
        analysis,
        quantile_bins=fit.quantile_bins,
        candidates=fit.candidates,
        curves=fitted_curves(fit),
        learned=learned,
    )


def _config(options: FitOptions, classes: Sequence[str]) -> dict[str, Any]:
    """Return the options as the service names them."""
    plain: dict[str, Any] = plain_part(options)
    plain["ood"] = {"level": plain.pop("ood_level")}
    return plain | {"classes": list(classes)}


def _data(sets: FittedSets) -> dict[str, Any]:
    records, others = sets.calibration, sets.evaluation
    design = records.design
    return {
        "kind": sets.kind,
        "samples": records.n_samples,
        "design": [name for name in ("weight", "group") if getattr(design, name) is not None],
        "class_counts": np.bincount(records.label, minlength=len(sets.classes)).tolist(),
        "evaluation_samples": None if others is None else others.n_samples,
    }


def _findings(sets: FittedSets, options: FitOptions) -> list[DocumentedFinding]:
    """Return likely problems of the sets."""
    records = sets.calibration
    evidence = RecordedSet(
        records=records,
        class_counts=np.bincount(records.label, minlength=len(sets.classes)),
        source=sets.kind,
        probabilities=sets.kind == "probabilities",
        bins=options.bins,
        evaluation=sets.evaluation,
        class_names=list(sets.classes),
    )
    return documented(run_checks(evidence))
