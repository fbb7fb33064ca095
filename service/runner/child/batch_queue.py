"""Requests that wait in the child for their rows to be run, some of each at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from service.bodies.limits import BodyLimits
from service.errors import DeadlineExceeded, InferenceFailed, ServiceError
from service.graph.names import PREFIX
from service.graph.serving import TOP_CLASSES, TOP_SCORES
from service.runner.answers import Expected, expected_of
from service.runner.batch_messages import Batch, Beginning, Part, Refused, Report, Sent, Words
from service.runner.child.decode_body import LOCATION, BodyDecoder, Decoded
from service.runner.child.failure import describe
from service.runner.child.loaded_model import LoadedModel, refuse_non_finite
from service.runner.child.onnx_session import note
from service.runner.frames import Array, Buffer

# Of requests with more rows the numbers are checked as they come, of others with their run.
CHECKED_TOGETHER = 32


@dataclass(slots=True, eq=False)
class _Waiting:
    number: int
    decoded: Decoded
    n_rows: int
    is_checked: bool
    # What rows must have in common to go through the model together.
    signature: tuple[tuple[int, ...], ...]
    next_row: int = 0

    @property
    def left(self) -> int:
        return self.n_rows - self.next_row

    def take(self, n_rows: int) -> "_Turn":
        turn = _Turn(self, self.next_row, min(self.next_row + n_rows, self.n_rows))
        self.next_row = turn.stop
        return turn


@dataclass(slots=True, eq=False)
class _Turn:
    """Rows of one request that go into the next run."""

    of: _Waiting
    start: int
    stop: int

    def rows(self) -> Mapping[str, Array]:
        whole = self.of.decoded.rows
        if self.stop - self.start == self.of.n_rows:
            return whole
        return {name: array[self.start : self.stop] for name, array in whole.items()}


class BatchQueue:
    """Runs what waits: some rows of every request, so that a long one keeps nobody waiting.

    A request that fails costs the others nothing but that those beside it are run anew, each
    alone.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._expected: Expected = expected_of(model.found.resolved)
        self._decoder = BodyDecoder(model.description.inputs)
        self._waiting: dict[int, _Waiting] = {}
        self._refused: list[Refused] = []

    def exchange(self, batch: Batch, bodies: Buffer) -> tuple[Report, Words]:
        """Take new requests and let go of dropped ones, run once, and report."""
        for number in batch.dropped:
            self._waiting.pop(number, None)
        self._refused = []
        if len(batch.sent) == 1 and not self._waiting:
            answered = self._answer_alike(batch, batch.sent[0], bodies)
            if answered is not None:
                return answered
        self._accept(batch, memoryview(bodies))
        turns = list(self._next_turns(batch.run_rows))
        parts, words = self._answer(turns)
        left = sum(waiting.left for waiting in self._waiting.values())
        return Report(parts, self._refused, left), words

    def _answer_alike(
        self, batch: Batch, sent: Sent, bodies: Buffer
    ) -> tuple[Report, Words] | None:
        """Answer requests that are read and run as one; None if they are to be taken apart."""
        try:
            decoded = self._decoder.decode_alike(
                sent, bodies, max_rows=batch.max_rows, run_rows=batch.run_rows
            )
            if decoded is None:
                return None
            self._decoder.check(decoded.rows)
            words = self._run(decoded.rows, 0)
        except Exception as error:  # noqa: BLE001 - a stranger's model; each tells for itself
            note(error)
            return None
        beginning = Beginning(decoded.n_rows, decoded.wanted, {})
        return Report([Part(sent.number, decoded.n_rows, beginning, sent.count)], [], 0), words

    def _accept(self, batch: Batch, bodies: memoryview) -> None:
        limits = BodyLimits(max_bytes=batch.max_bytes, max_rows=batch.max_rows)
        start = 0
        for sent in _one_by_one(batch.sent):
            body = bodies[start : start + sent.length]
            start += sent.length
            try:
                waiting = self._decoded(sent, body, limits)
            except ServiceError as error:
                self._refuse(sent, error)
            except Exception as error:  # noqa: BLE001 - a stranger's bytes
                self._refuse(sent, _unknown(error))
            else:
                self._waiting[sent.number] = waiting

    def _decoded(self, sent: Sent, body: Buffer, limits: BodyLimits) -> _Waiting:
        decoded = self._decoder.decode(sent, body, limits)
        is_checked = decoded.is_checked
        if not is_checked and decoded.n_rows > CHECKED_TOGETHER:
            self._decoder.check(decoded.rows)
            is_checked = True
        signature = tuple(array.shape[1:] for array in decoded.rows.values())
        return _Waiting(sent.number, decoded, decoded.n_rows, is_checked, signature)

    def _refuse(self, request: "Sent | _Waiting", error: ServiceError) -> None:
        code, message, violations = describe(error)
        self._refused.append(Refused(request.number, code, message, violations))

    def _next_turns(self, run_rows: int) -> Iterator[_Turn]:
        """Divide a run among those that may go together with the one that came first."""
        if not self._waiting:
            return
        first = next(iter(self._waiting.values())).signature
        together = [w for w in self._waiting.values() if w.signature == first][:run_rows]
        share = max(run_rows // len(together), 1)
        room = run_rows - sum(min(waiting.left, share) for waiting in together)
        for waiting in together:
            size = min(waiting.left, share)
            if size < waiting.left:
                more = min(waiting.left - size, room)
                room -= more
                size += more
            turn = waiting.take(size)
            if not waiting.left:
                del self._waiting[waiting.number]
            yield turn

    def _answer(self, turns: list[_Turn]) -> tuple[list[Part], Words]:
        if len(turns) > 1:
            try:
                return [self._part(turn) for turn in turns], self._run_turns(turns)
            except DeadlineExceeded as error:
                # Which of them it was cannot be told within their time.
                for turn in turns:
                    self._fail(turn, error)
                return [], self._words(0)
            except Exception as error:  # noqa: BLE001 - a stranger's model; each tells for itself
                note(error)
        parts, words = [], [self._words(0)]
        for turn in turns:
            try:
                words.append(self._run_turns([turn]))
            except ServiceError as error:
                self._fail(turn, error)
            except Exception as error:  # noqa: BLE001 - a stranger's model
                self._fail(turn, _unknown(error))
            else:
                parts.append(self._part(turn))
        return parts, words[1] if len(words) == 2 else np.concatenate(words)  # noqa: PLR2004

    def _fail(self, turn: _Turn, error: ServiceError) -> None:
        self._waiting.pop(turn.of.number, None)
        self._refuse(turn.of, error)

    def _part(self, turn: _Turn) -> Part:
        beginning = None
        if turn.start == 0:
            decoded = turn.of.decoded
            beginning = Beginning(turn.of.n_rows, decoded.wanted, dict(decoded.supplied))
        return Part(turn.of.number, turn.stop - turn.start, beginning)

    def _run_turns(self, turns: list[_Turn]) -> Words:
        """Run rows together; the first of several requests that is refused refuses all."""
        rows = _joined(turns)
        if not all(turn.of.is_checked for turn in turns):
            self._decoder.check(rows)
        return self._run(rows, turns[0].start)

    def _run(self, rows: Mapping[str, Array], start: int) -> Words:
        answer = self._model.answer_fitted(rows, location=LOCATION, start=start, refuse=False)
        expected, n_rows = self._expected, len(answer[TOP_CLASSES])
        words = self._words(n_rows)
        words[:, : expected.n_top].view(np.int32)[:] = answer[TOP_CLASSES]
        words[:, expected.n_top : 2 * expected.n_top] = answer[TOP_SCORES]
        for place, name in enumerate(expected.columns, 2 * expected.n_top):
            words[:, place] = answer[PREFIX + name]
        if not np.isfinite(words[:, expected.n_top :]).all():
            refuse_non_finite(answer, LOCATION, start)
        return words

    def _words(self, n_rows: int) -> Words:
        return np.empty((n_rows, self._expected.n_words), np.float32)


def _one_by_one(sent: Iterable[Sent]) -> Iterator[Sent]:
    for alike in sent:
        for number in range(alike.number, alike.number + alike.count):
            yield msgspec.structs.replace(alike, number=number, count=1)


def _unknown(error: Exception) -> InferenceFailed:
    note(error)
    if isinstance(error, MemoryError):
        return InferenceFailed("There is not enough memory for the ONNX model.")
    return InferenceFailed("The ONNX model could not be run.")


def _joined(turns: list[_Turn]) -> Mapping[str, Array]:
    if len(turns) == 1:
        return turns[0].rows()
    parts = [turn.rows() for turn in turns]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
