"""Rules of a bins document, beyond the types of its parts."""

from collections import Counter
from collections.abc import Iterator
from operator import gt
from typing import TypeAlias

from howsure.bins_document.bin_rules import TOLERANCE, broken_bins, is_float32
from howsure.bins_document.conversion import fitted_curve, fitted_formula
from howsure.bins_document.digest import content_sha256
from howsure.bins_document.document import BinsDocument, schema_of
from howsure.bins_document.table import Table
from howsure.statistics.measures import LEARNED, SCORE, check_measures, parse_measure
from howsure.statistics.softmax import BINARY

# The place of a part in a document, and a message.
Broken: TypeAlias = tuple[str, str]


def broken_rules(document: BinsDocument) -> Iterator[Broken]:
    """Yield the location and the message of broken rules; a rule may rely on those before it."""
    yield from _broken_by_model(document)
    yield from _broken_by_events(document)
    for i, table in enumerate(document.tables):
        yield from _broken_by_table(table, f"tables[{i}]", n_samples=document.data.samples)
        yield from _broken_by_formulas(table, f"tables[{i}]", n_classes=len(document.classes))
    schema = schema_of(document.tables)
    if document.schema != schema:
        yield (
            "schema",
            f"expected {schema!r}: the second one has curves, formulas or effective counts",
        )
    yield from _broken_by_label_models(document)
    yield from _broken_by_hits(document)
    yield from _broken_by_thresholds(document)
    computed = content_sha256(document)
    if document.content_sha256 != computed:
        yield (
            "content_sha256",
            (
                f"expected {computed}, the digest of this content; it was changed after it was "
                "exported: export it again"
            ),
        )


def _broken_by_model(document: BinsDocument) -> Iterator[Broken]:
    without = document.model_sha256 is None
    if (document.model is None) != without:
        yield "model", "expected null with a model_sha256 of null, an object otherwise"
    if (document.data.kind != "inputs") != without:
        yield (
            "data.kind",
            "expected 'inputs' with a model, 'logits', 'probabilities' or 'pairs' without one",
        )
    for i, table in enumerate(document.tables):
        try:
            needs_model = parse_measure(table.measure).needs_model
            check_measures([table.measure], logits=document.data.kind != "probabilities")
        except ValueError as error:
            yield f"tables[{i}].measure", str(error)
        else:
            if without and needs_model:
                yield f"tables[{i}].measure", "it needs an ONNX model, and model_sha256 is null"
        if (table.measure == SCORE) != (document.data.kind == "pairs"):
            yield (
                f"tables[{i}].measure",
                f"expected {SCORE!r} with the data.kind 'pairs', and with no other",
            )


def _broken_by_events(document: BinsDocument) -> Iterator[Broken]:
    events, n_classes = document.top_k, len(document.classes)
    if events != sorted(set(events)):
        yield "top_k", "expected rising values, each once"
    if events[-1] >= n_classes:
        yield "top_k", f"Top-{events[-1]} is certain with {n_classes} classes"
    if document.decision_threshold is not None and n_classes != BINARY:
        yield "decision_threshold", f"decides between two classes, and there are {n_classes}"
    seen = Counter((table.event, table.measure) for table in document.tables)
    for i, table in enumerate(document.tables):
        if table.event not in events:
            yield f"tables[{i}].event", f"expected one of top_k, {events}"
        if seen[table.event, table.measure] > 1:
            yield f"tables[{i}].measure", f"Top-{table.event} has two tables of this measure"
    served = [(str(table.event), table.measure) for table in document.tables if table.served]
    if len(served) != len(events) or document.serve != dict(served):
        yield (
            "serve",
            "expected the measure of the one served table of each event, and one for each event",
        )


def _broken_by_table(table: Table, place: str, *, n_samples: int) -> Iterator[Broken]:
    if not table.requested_bins >= table.quantile_bins >= len(table.bins):
        yield (
            f"{place}.quantile_bins",
            f"expected from {len(table.bins)}, the bins there are, to requested_bins",
        )
    for path, message in broken_bins(
        table.bins,
        accuracy=table.prior.accuracy,
        n_samples=n_samples,
        interpolated=table.lookup == "interpolated",
    ):
        yield f"{place}.{path}", message
    most = [one.count * (1 + TOLERANCE) for one in table.bins]
    effective = most if table.effective_counts is None else table.effective_counts
    if len(effective) != len(most) or any(map(gt, effective, most)):
        yield f"{place}.effective_counts", "expected a number for each bin, at most its count"


def _broken_by_formulas(table: Table, place: str, *, n_classes: int) -> Iterator[Broken]:
    """Yield what is wrong with the curve of a smooth table, or the formula of a learned measure."""
    if (table.curve is None) == (table.lookup == "smooth"):
        yield f"{place}.curve", "expected a curve with the lookup 'smooth', and with no other"
    name = "learned" if table.label_model is None else "label_model"
    n_formulas = (table.learned is not None) + (table.label_model is not None)
    if n_formulas != (table.measure == LEARNED):
        yield f"{place}.{name}", "expected one formula with the measure 'learned', and no other"
    try:
        fitted_curve(table)
    except ValueError as error:
        yield f"{place}.curve", str(error)
    try:
        formula = fitted_formula(table)
    except ValueError as error:
        yield f"{place}.{name}", str(error)
        return
    if formula is None:
        return
    if table.learned is not None and table.learned.k != table.event:
        yield f"{place}.learned.k", f"expected the event, {table.event}"
    if formula.n_classes != n_classes:
        yield f"{place}.{name}.offset", f"expected a number for each of {n_classes} classes"


def _broken_by_label_models(document: BinsDocument) -> Iterator[Broken]:
    """Yield tables with another model of the labels than an earlier one."""
    of_tables = [(i, table.label_model) for i, table in enumerate(document.tables)]
    present = [(i, model) for i, model in of_tables if model is not None]
    for i, model in present[1:]:
        if model != present[0][1]:
            place = f"tables[{i}].label_model"
            yield place, f"expected the model of the labels of tables[{present[0][0]}]"


def _broken_by_hits(document: BinsDocument) -> Iterator[Broken]:
    """Yield tables of one event that disagree about how often it holds."""
    known: dict[int, int] = {}
    for i, table in enumerate(document.tables):
        hits = sum(one.hits for one in table.bins)
        if known.setdefault(table.event, hits) != hits:
            yield (
                f"tables[{i}].bins",
                f"hold {hits} hits; another table of Top-{table.event} holds {known[table.event]}",
            )


def _broken_by_thresholds(document: BinsDocument) -> Iterator[Broken]:
    risks = [target.max_risk for target in document.selective]
    if len(set(risks)) != len(risks):
        yield "selective", "the same max_risk is named twice"
    thresholds = {"out_of_distribution": document.out_of_distribution.threshold}
    thresholds |= {f"selective[{i}]": one.threshold for i, one in enumerate(document.selective)}
    for place, threshold in thresholds.items():
        if threshold is None:
            continue
        if 1 not in document.top_k:
            yield f"{place}.threshold", "expected null: Top-1 is no event"
        if not is_float32(threshold):
            yield f"{place}.threshold", f"expected a float32, got {threshold!r}"
