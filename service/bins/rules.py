"""Rules of a bins document, beyond the types of its parts."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from operator import gt
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
from pydantic import BaseModel

from howsure.statistics.bins.document import TOLERANCE, broken_rule, is_float32
from howsure.statistics.measures import LEARNED, check_measures, parse_measure
from howsure.statistics.softmax import BINARY
from service.bins.digest import content_sha256
from service.bins.schemas import (
    MAX_TABLES,
    SCHEMAS,
    BinsDocument,
    DocumentHead,
    Table,
    bin_columns,
    core_curve,
    learned_formula,
    schema_of,
)
from service.calibrations.config import MAX_CLASSES_BYTES
from service.calibrations.config_errors import parsed_json
from service.calibrations.fit_config import MAX_BINS
from service.errors import InvalidInput, MalformedRequest, shown

PLACE = "document"

# A location within the document, and a message.
Broken: TypeAlias = tuple[str, str]
Bytes: TypeAlias = bytes | msgspec.Raw
T = TypeVar("T")
_EMPTY = msgspec.Raw(b"[]")
_ABSENT = msgspec.Raw()


# No part of a real document comes close to these. They bound the time that one call of the parser
# takes, since no other thread runs meanwhile.
MAX_HEAD_BYTES = 256 * 1024
MAX_TABLE_BYTES = 16 * 1024
MAX_BIN_BYTES = 2 * 1024
MAX_FORMULA_BYTES = 4 * 1024**2
MAX_PART_BYTES = {
    "learned": MAX_FORMULA_BYTES,
    "label_model": MAX_FORMULA_BYTES,
    "effective_counts": 256 * 1024,
}
# The names of the keys of a bin have more.
LEAST_ITEM_BYTES = 64
FEWEST_ITEMS = 256


def _struct(model: type[BaseModel], *further: str) -> type[msgspec.Struct]:
    """Return the fields of a model without their types; the first unknown field is an error."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    fields = [(name, msgspec.Raw, _ABSENT) for name in (*names, *further)]
    return msgspec.defstruct(model.__name__, fields, forbid_unknown_fields=True)


_HEAD, _TABLE = _struct(DocumentHead, "tables"), _struct(Table)


def read_bins_document(body: bytes) -> BinsDocument:
    """Read a document and check every rule of it.

    Raises
    ------
    MalformedRequest
        If it is no JSON.
    InvalidInput
        If it breaks a rule; the violations say where.
    """
    _check_schema(body)
    parts = _members(_HEAD, body, PLACE)
    classes = parts.get("classes", _EMPTY)
    _check_bytes(classes, MAX_CLASSES_BYTES, f"{PLACE}.classes")
    raw_tables = _list(parts.pop("tables", _EMPTY), f"{PLACE}.tables", most=MAX_TABLES)
    text = msgspec.json.encode(parts)
    _check_bytes(text, MAX_HEAD_BYTES + len(bytes(classes)), PLACE)
    head = parsed_json(text, DocumentHead, failure=InvalidInput, place=PLACE)
    tables = [_table(raw, f"{PLACE}.tables[{i}]") for i, raw in enumerate(raw_tables)]
    document = BinsDocument.model_construct(**dict(head), tables=tables)
    for location, message in _broken_rules(document):
        raise InvalidInput.at(f"{PLACE}.{location}", message)
    return document


def _table(raw: Bytes, place: str) -> Table:
    parts = _members(_TABLE, raw, place)
    found = parts.pop("bins", _EMPTY)
    for i, part in enumerate(_list(found, f"{place}.bins", most=MAX_BINS)):
        _check_bytes(part, MAX_BIN_BYTES, f"{place}.bins[{i}]")
    for name, most in MAX_PART_BYTES.items():
        _check_bytes(parts.pop(name, _EMPTY), most, f"{place}.{name}")
    _check_bytes(msgspec.json.encode(parts), MAX_TABLE_BYTES, place)
    return parsed_json(bytes(raw), Table, failure=InvalidInput, place=place)


def _members(kind: type[msgspec.Struct], text: Bytes, place: str) -> dict[str, msgspec.Raw]:
    """Return the members of an object, each as its text."""
    found = _parsed(text, kind, place, "an object")
    members = zip(kind.__struct_encode_fields__, msgspec.structs.astuple(found), strict=True)
    return {name: value for name, value in members if value is not _ABSENT}


@cache
def _items(count: int) -> type[msgspec.Struct]:
    """Return the first items of a list as fields; the decoder makes no objects of further ones."""
    fields = [(f"item_{i}", msgspec.Raw, _ABSENT) for i in range(count)]
    return msgspec.defstruct("Items", fields, array_like=True)


def _list(text: Bytes, place: str, *, most: int) -> list[msgspec.Raw]:
    """Return the items of a list, each as its text."""
    # More than a list of valid items has; a power of two, so that there are few types.
    count = max(2 ** (len(bytes(text)) // LEAST_ITEM_BYTES).bit_length(), FEWEST_ITEMS)
    items = msgspec.structs.astuple(_parsed(text, _items(min(count, most + 1)), place, "a list"))
    found = [item for item in items if item is not _ABSENT]
    if not found or len(found) == len(items):
        raise InvalidInput.at(
            place, f"expected a list of 1 to {most} items of at least {LEAST_ITEM_BYTES} bytes"
        )
    return found


def _parsed(text: Bytes, kind: type[T], place: str, wanted: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        unknown = re.search("unknown field `(.*)`", str(error), re.DOTALL)
        if unknown:
            where = f"{place}.{shown(unknown[1])[1:-1]}"
            raise InvalidInput.at(where, "there is no such key") from error
        raise InvalidInput.at(place, f"expected {wanted}") from error
    except RecursionError as error:
        raise MalformedRequest.at(PLACE, "the lists are nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest.at(PLACE, f"this is no valid JSON: {error}") from error


def _check_bytes(text: Bytes, most: int, place: str) -> None:
    length = len(bytes(text))
    if length > most:
        raise InvalidInput.at(place, f"expected at most {most} bytes, got {length}")


class _Versioned(msgspec.Struct):
    schema: object = None


def _check_schema(body: bytes) -> None:
    """Refuse another schema before the rules of this one are applied."""
    found = _parsed(body, _Versioned, PLACE, "an object").schema
    if found not in SCHEMAS:
        got = "none" if found is None else shown(str(found))
        known = " or ".join(map(repr, SCHEMAS))
        raise InvalidInput.at(
            f"{PLACE}.schema", f"expected {known}, the schemas that are read here, got {got}"
        )


def _broken_rules(document: BinsDocument) -> Iterator[Broken]:
    """Yield the location and the message of broken rules; a rule may rely on those before it."""
    yield from _broken_by_model(document)
    yield from _broken_by_events(document)
    for i, table in enumerate(document.tables):
        yield from _broken_by_table(table, f"tables[{i}]", n_samples=document.data.samples)
        yield from _broken_by_formulas(table, f"tables[{i}]", n_classes=len(document.classes))
    schema = schema_of(document.tables)
    if document.schema_ != schema:
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
            "expected 'inputs' with a model, 'logits' or 'probabilities' without one",
        )
    for i, table in enumerate(document.tables):
        if without and parse_measure(table.measure).needs_model:
            yield (
                f"tables[{i}].measure",
                f"{shown(table.measure)} needs an ONNX model, and model_sha256 is null",
            )
        if document.data.kind == "probabilities":
            try:
                check_measures([table.measure], logits=False)
            except ValueError as error:
                yield f"tables[{i}].measure", str(error)


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
    broken = broken_rule(
        bin_columns(table.bins),
        accuracy=table.prior.accuracy,
        n_samples=n_samples,
        interpolated=table.lookup == "interpolated",
    )
    if broken is not None:
        yield f"{place}.{broken.path}", broken.message
    most = [found.count * (1 + TOLERANCE) for found in table.bins]
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
        core_curve(table)
    except ValueError as error:
        yield f"{place}.curve", str(error)
    try:
        formula = learned_formula(table)
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
        hits = sum(found.hits for found in table.bins)
        if known.setdefault(table.event, hits) != hits:
            yield (
                f"tables[{i}].bins",
                f"hold {hits} hits; another table of Top-{table.event} holds {known[table.event]}",
            )


def _broken_by_thresholds(document: BinsDocument) -> Iterator[Broken]:
    risks = [target.max_risk for target in document.selective]
    if len(set(risks)) != len(risks):
        yield "selective", "the same max_risk is named twice"
    found = {"out_of_distribution": document.out_of_distribution.threshold}
    found |= {f"selective[{i}]": target.threshold for i, target in enumerate(document.selective)}
    for place, threshold in found.items():
        if threshold is None:
            continue
        if 1 not in document.top_k:
            yield f"{place}.threshold", "expected null: Top-1 is no event"
        if not is_float32(np.array(threshold)):
            yield f"{place}.threshold", f"expected a float32, got {threshold!r}"
