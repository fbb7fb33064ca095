"""Requests whose rows wait in the child, and those rows of each that go into a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np

from service.child.failure import describe
from service.child.onnx.loaded_model import refuse_non_finite
from service.child.onnx.session import note
from service.child.requests.body_decoder import LOCATION, Decoded
from service.child.requests.limits import BodyLimits
from service.child.requests.tensors import is_surely_finite
from service.errors import DeadlineExceeded, InferenceFailed, InvalidInput, ServiceError
from service.runner.messages.frames import Array, Buffer
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.messages.predict_batches import (
    Batch,
    Beginning,
    Part,
    Refused,
    Report,
    Sent,
    Words,
)
from service.runner.model_output import Expected, expected_of


class Waiting(msgspec.Struct, eq=False):
    """A request that was read and not yet answered."""

    number: int
    decoded: Decoded
    n_rows: int
    is_checked: bool
    # What rows must have in common to go through the model together.
    signature: tuple[tuple[str, tuple[int, ...]], ...]
    next_row: int = 0

    @property
    def left(self) -> int:
        """How many rows are still to be run."""
        return self.n_rows - self.next_row

    def take(self, n_rows: int) -> "Turn":
        """Return the next so many rows, or those that are left."""
        turn = Turn(self, self.next_row, min(self.next_row + n_rows, self.n_rows))
        self.next_row = turn.stop
        return turn


class Turn(msgspec.Struct, eq=False):
    """Rows of one request that go into the next run."""

    of: Waiting
    start: int
    stop: int

    def rows(self) -> dict[str, Array]:
        """Return them as the model takes them."""
        whole = self.of.decoded.rows
        if self.stop - self.start == self.of.n_rows:
            return whole
        return {name: array[self.start : self.stop] for name, array in whole.items()}


def next_turns(waiting: dict[int, Waiting], run_rows: int) -> Iterator[Turn]:
    """Divide a run among those that may go together with the one that came first.

    Who has no rows left is taken out of ``waiting``, and the others go behind all that wait: who
    has rows of another shape comes first in the next run.
    """
    if not waiting:
        return
    first = next(iter(waiting.values())).signature
    together = [one for one in waiting.values() if one.signature == first][:run_rows]
    share = max(run_rows // len(together), 1)
    room = run_rows - sum(min(one.left, share) for one in together)
    for one in together:
        size = min(one.left, share)
        if size < one.left:
            more = min(one.left - size, room)
            room -= more
            size += more
        turn = one.take(size)
        del waiting[one.number]
        if one.left:
            waiting[one.number] = one
        yield turn


def joined(turns: Sequence[Turn]) -> dict[str, Array]:
    """Return the rows of all turns, one after the other."""
    if len(turns) == 1:
        return turns[0].rows()
    parts = [turn.rows() for turn in turns]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# Of requests with more rows the numbers are checked as they come, of others with their run.
CHECKED_TOGETHER = 32
greatest = np.maximum.reduce


class Answering(Protocol):
    """Answers rows that were read."""

    @property
    def found(self) -> LoadedOnnxModel:
        """What is known of it."""

    def matrix(self, rows: dict[str, Array], *, location: str, start: int) -> Array:
        """Return top classes, top scores and uncertainties of each row, side by side."""


class Decoder(Protocol):
    """Reads bodies."""

    def decode(self, sent: Sent, body: Buffer, limits: BodyLimits) -> Decoded:
        """Read one body."""

    def decode_alike(
        self, sent: Sent, bodies: Buffer, *, max_rows: int, run_rows: int
    ) -> Decoded | None:
        """Read several bodies at once; return None if each is to be read by itself."""

    def check(self, rows: Mapping[str, Array]) -> None:
        """Refuse rows with a number that is not finite."""


class BatchQueue:
    """Runs what waits: some rows of every request, so that a long one keeps nobody waiting.

    A request that fails costs the others nothing but that, where it stopped their run, they are
    run anew without it: each half by itself, and so on.
    """

    def __init__(self, model: Answering, decoder: Decoder) -> None:
        self._model = model
        self._expected: Expected = expected_of(model.found.resolved)
        self._decoder = decoder
        self._waiting: dict[int, Waiting] = {}
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
        turns = list(next_turns(self._waiting, batch.run_rows))
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
            if not self._is_sound(words):
                return None
        except DeadlineExceeded as error:
            for one in _one_by_one(batch.sent):
                self._refuse(one, error)
            return Report([], self._refused, 0), self._words(0)
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

    def _decoded(self, sent: Sent, body: Buffer, limits: BodyLimits) -> Waiting:
        decoded = self._decoder.decode(sent, body, limits)
        is_checked = decoded.is_checked
        if not is_checked and decoded.n_rows > CHECKED_TOGETHER:
            self._decoder.check(decoded.rows)
            is_checked = True
        signature = tuple((name, array.shape[1:]) for name, array in decoded.rows.items())
        return Waiting(sent.number, decoded, decoded.n_rows, is_checked, signature)

    def _refuse(self, request: "Sent | Waiting", error: ServiceError) -> None:
        code, message, violations = describe(error)
        self._refused.append(Refused(request.number, code, message, violations))

    def _answer(self, turns: list[Turn]) -> tuple[list[Part], Words]:
        """Run rows together; where that fails, each half of the requests by itself."""
        try:
            turns = self._finite(turns)
            if not turns:
                return [], self._words(0)
            words = self._run(joined(turns), turns[0].start)
        except DeadlineExceeded as error:
            # Which of them it was cannot be told within their time.
            for turn in turns:
                self._fail(turn, error)
            return [], self._words(0)
        except Exception as error:  # noqa: BLE001 - a stranger's model
            if len(turns) == 1:
                self._fail(turns[0], error if isinstance(error, ServiceError) else _unknown(error))
                return [], self._words(0)
            note(error)
        else:
            return self._sound(turns, words)
        middle = len(turns) // 2
        halves = [self._answer(turns[:middle]), self._answer(turns[middle:])]
        return [part for parts, _ in halves for part in parts], np.concatenate(
            [words for _, words in halves]
        )

    def _finite(self, turns: list[Turn]) -> list[Turn]:
        """Return the turns whose numbers are finite; refuse the others."""
        unchecked = [turn for turn in turns if not turn.of.is_checked]
        if not unchecked:
            return turns
        try:
            self._decoder.check(joined(unchecked))
        except InvalidInput:
            return [turn for turn in turns if self._is_finite(turn)]
        return turns

    def _is_finite(self, turn: Turn) -> bool:
        if not turn.of.is_checked:
            try:
                self._decoder.check(turn.of.decoded.rows)
            except InvalidInput as error:
                self._fail(turn, error)
                return False
            turn.of.is_checked = True
        return True

    def _sound(self, turns: list[Turn], words: Words) -> tuple[list[Part], Words]:
        """Return what answers; refuse requests with a row that the model has no answer to."""
        if self._is_sound(words):
            return [self._part(turn) for turn in turns], words
        parts, kept, start = [], [self._words(0)], 0
        for turn in turns:
            stop = start + turn.stop - turn.start
            try:
                self._check_sound(words[start:stop], turn.start)
            except InvalidInput as error:
                self._fail(turn, error)
            else:
                parts.append(self._part(turn))
                kept.append(words[start:stop])
            start = stop
        return parts, np.concatenate(kept)

    def _is_sound(self, words: Words) -> bool:
        n_top = self._expected.n_top
        if greatest(words[:, :n_top], axis=None) >= self._expected.n_classes:
            return False
        return is_surely_finite(words) or bool(np.isfinite(words[:, n_top:]).all())

    def _check_sound(self, words: Words, start: int) -> None:
        """Refuse answers that hold what is none; ``start`` is the number of the first row.

        The parent would take them for those of a child gone mad.
        """
        if self._is_sound(words):
            return
        n_top, n_classes = self._expected.n_top, self._expected.n_classes
        refuse_non_finite({"words": words[:, n_top:]}, LOCATION, start)
        unknown = (words[:, :n_top] >= n_classes).any(axis=1)
        row = start + int(np.argmax(unknown))
        raise InvalidInput.at(
            f"{LOCATION}[{row}]",
            f"the ONNX model's output for row {row} has more than the {n_classes} classes that "
            "it was calibrated with",
        )

    def _fail(self, turn: Turn, error: ServiceError) -> None:
        self._waiting.pop(turn.of.number, None)
        self._refuse(turn.of, error)

    def _part(self, turn: Turn) -> Part:
        beginning = None
        if turn.start == 0:
            decoded = turn.of.decoded
            beginning = Beginning(turn.of.n_rows, decoded.wanted, dict(decoded.supplied))
        return Part(turn.of.number, turn.stop - turn.start, beginning)

    def _run(self, rows: dict[str, Array], start: int) -> Words:
        return self._model.matrix(rows, location=LOCATION, start=start)

    def _words(self, n_rows: int) -> Words:
        return np.empty((n_rows, self._expected.n_words), np.float32)


def _one_by_one(sent: Iterable[Sent]) -> Iterator[Sent]:
    for alike in sent:
        if alike.count == 1:
            yield alike
            continue
        for number in range(alike.number, alike.number + alike.count):
            yield msgspec.structs.replace(alike, number=number, count=1)


def _unknown(error: Exception) -> InferenceFailed:
    note(error)
    if isinstance(error, MemoryError):
        return InferenceFailed("There is not enough memory for the ONNX model.")
    return InferenceFailed("The ONNX model could not be run.")
