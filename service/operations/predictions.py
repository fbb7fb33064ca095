"""Predictions as the JSON that callers read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

import msgspec

from service.operations.predict import SHOWN_CLASSES, PredictionBatch
from service.operations.served import ServedCalibration, ServedEvent

_encode = msgspec.json.encode


@dataclass(frozen=True, eq=False)
class PredictionLayout:
    """What is the same in all answers of a calibration, in JSON.

    Attributes
    ----------
    opening : bytes
        All that stands before the first prediction.
    classes : sequence of bytes
        Index and label of each class, as members of an object.
    row : bytes
        A prediction with ``%b`` for each value that is its own.
    """

    opening: bytes
    classes: Sequence[bytes]
    row: bytes


def opening_of(served: ServedCalibration) -> bytes:
    """Return what stands before the first prediction of an answer; ``]}`` ends it."""
    return _layout_of(served).opening


def predictions_json(batch: PredictionBatch) -> list[bytes]:
    """Return each sample's prediction, an object.

    ``classes[].score`` is the model's own softmax; ``top1.probability`` is the calibrated one.
    """
    layout = _layout_of(batch.calibration)
    named = [[layout.classes[i] for i in column] for column in batch.classes.T.tolist()]
    values = _columns(batch)
    scored = chain.from_iterable(zip(named, values, strict=False))
    columns = [named[0], *scored, *values[len(named) :]]
    return [layout.row % row for row in zip(*columns, strict=True)]


def _columns(batch: PredictionBatch) -> list[list[bytes]]:
    """Return scores, what each event gives, and flags: a column each, its values in JSON."""
    columns = batch.scores.T.tolist()
    for answer in batch.events:
        found = answer.found
        parts = (found.probability, found.lower, found.upper, answer.uncertainty, found.bin)
        columns.extend(part.tolist() for part in parts)
    flags = (batch.out_of_distribution, *batch.abstain.values())
    columns.extend(flag.tolist() for flag in flags if flag is not None)
    return [column.split(b",") for column in _encode(columns)[2:-2].split(b"],[")]


_layouts: WeakKeyDictionary[ServedCalibration, PredictionLayout] = WeakKeyDictionary()


def _layout_of(served: ServedCalibration) -> PredictionLayout:
    found = _layouts.get(served)
    if found is None:
        found = _layouts[served] = _layout(served)
    return found


def _layout(served: ServedCalibration) -> PredictionLayout:
    ref = served.ref
    calibration = _encode({"id": str(ref.id), "name": ref.name, "version": ref.version})
    return PredictionLayout(
        opening=b'{"calibration":%b,"predictions":[' % calibration,
        classes=[
            _encode({"class": index, "label": label})[1:-1]
            for index, label in enumerate(served.class_names)
        ],
        row=_row(served),
    )


def _row(served: ServedCalibration) -> bytes:
    n_shown = min(SHOWN_CLASSES, len(served.class_names))
    has_top1 = any(event.k == 1 for event in served.events)

    def flag(threshold: float | None) -> bytes:
        return b"%b" if has_top1 and threshold is not None else b"null"

    abstain = [_member(risk, flag(bound)) for risk, bound in served.accept_thresholds.items()]
    members = [
        b"%b",
        b'"classes":[%b]' % b",".join([b'{%b,"score":%b}'] * n_shown),
        *(_member(f"top{event.k}", _event(event)) for event in served.events),
        _member("out_of_distribution", flag(served.ood_threshold)),
        _member("abstain", _object(abstain)),
    ]
    return _object(members)


def _event(event: ServedEvent) -> bytes:
    return _object(
        [
            b'"probability":%b',
            b'"interval":[%b,%b]',
            _member("measure", _literal(event.measure)),
            b'"uncertainty":%b',
            b'"bin":%b',
        ]
    )


def _literal(value: str) -> bytes:
    return _encode(value).replace(b"%", b"%%")


def _member(name: str, value: bytes) -> bytes:
    return _literal(name) + b":" + value


def _object(members: Iterable[bytes]) -> bytes:
    return b"{" + b",".join(members) + b"}"
