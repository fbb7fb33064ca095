"""The queue of requests in the child, and the rows of each that go into a run."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from howsure.statistics.input_ranges import RowExtents
from service.child.failure import describe
from service.child.onnx.batches import join_parts
from service.child.onnx.loaded_model import LoadedModel, is_sound, refuse_unsound
from service.child.onnx.scores_model import ScoresDecoder, ScoresModel
from service.child.onnx.session import note
from service.child.requests.body_decoder import LOCATION, BodyDecoder, Decoded
from service.child.requests.limits import BodyLimits
from service.errors import DeadlineExceeded, InferenceFailed, InvalidInput, ServiceError
from service.runner.messages.channel import INBOX_BYTES
from service.runner.messages.frames import Array, Buffer
from service.runner.messages.predict_batches import (
    MOST_PARTS,
    Batch,
    BatchResult,
    RequestError,
    ResponseHead,
    RowRange,
    SentBodies,
    Words,
)
from service.runner.model_output import OutputSpec, output_spec


class PendingRequest(msgspec.Struct, eq=False):
    """A request that was read and has not been answered completely."""

    number: int
    decoded: Decoded
    # Rows with the same signature can go through the model together.
    signature: tuple[tuple[str, tuple[int, ...]], ...]
    next_row: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of its rows."""
        return sum(array.nbytes for array in self.decoded.rows.values())

    @property
    def left(self) -> int:
        """Number of rows that have not been run."""
        return self.decoded.n_rows - self.next_row

    def take(self, n_rows: int) -> "RequestSlice":
        """Return the next rows, at most ``n_rows``."""
        turn = RequestSlice(self, self.next_row, min(self.next_row + n_rows, self.decoded.n_rows))
        self.next_row = turn.stop
        return turn


class RequestSlice(msgspec.Struct, eq=False):
    """Rows of one request that go into the next run."""

    of: PendingRequest
    start: int
    stop: int

    def rows(self) -> dict[str, Array]:
        """Return the arrays of the rows."""
        whole = self.of.decoded.rows
        if self.stop - self.start == self.of.decoded.n_rows:
            return whole
        return {name: array[self.start : self.stop] for name, array in whole.items()}

    def extents(self) -> dict[str, RowExtents]:
        """Return the extents that were computed when the rows were read."""
        part = slice(self.start, self.stop)
        return {name: (a[part], b[part]) for name, (a, b) in self.of.decoded.extents.items()}

    def supplied(self, name: str) -> Array:
        """Return a supplied uncertainty of the rows."""
        return self.of.decoded.supplied[name][self.start : self.stop]


def next_turns(waiting: dict[int, PendingRequest], run_rows: int) -> Iterator[RequestSlice]:
    """Divide a run among the requests with the signature of the first one.

    Finished requests are removed from ``waiting``. The rest move to the end, so that requests with
    another row shape run next.
    """
    if not waiting:
        return
    first = next(iter(waiting.values())).signature
    together = [one for one in waiting.values() if one.signature == first]
    together = together[: min(run_rows, MOST_PARTS // 2)]
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


def joined(turns: Sequence[RequestSlice]) -> dict[str, Array]:
    """Return the rows of all slices, one after the other."""
    if len(turns) == 1:
        return turns[0].rows()
    return join_parts([turn.rows() for turn in turns])


# No further body is read in an exchange after so long.
READING_SECONDS = 0.5


class BatchQueue:
    """Runs some rows of every request, so that a long request does not delay the others.

    If a request makes a run fail, the others are run again without it: each half of the run by
    itself, recursively. A body that takes long to read does not delay the others either: they are
    read in a later exchange.
    """

    def __init__(
        self, model: LoadedModel | ScoresModel, decoder: BodyDecoder | ScoresDecoder
    ) -> None:
        self._model = model
        self._spec: OutputSpec = output_spec(model.found.resolved)
        self._decoder = decoder
        self._unread: deque[tuple[SentBodies, Buffer]] = deque()
        self._waiting: dict[int, PendingRequest] = {}
        self._refused: list[RequestError] = []

    def exchange(self, batch: Batch, bodies: Buffer) -> tuple[BatchResult, Words]:
        """Add new requests, forget dropped ones, run once, and return the result."""
        for number in batch.dropped:
            self._waiting.pop(number, None)
        if batch.dropped:
            self._unread = deque(one for one in self._unread if one[0].number not in batch.dropped)
        self._refused = []
        is_first = not self._waiting and not self._unread
        if len(batch.sent) == 1 and is_first and isinstance(self._decoder, BodyDecoder):
            answered = self._answer_alike(self._decoder, batch, bodies)
            if answered is not None:
                return answered
        self._accept(batch, memoryview(bodies))
        turns = list(next_turns(self._waiting, batch.run_rows))
        parts, words = self._answer(turns) if turns else ([], self._words(0))
        left = sum(waiting.left for waiting in self._waiting.values())
        return BatchResult(parts, self._refused, left + len(self._unread)), words

    def _answer_alike(
        self, decoder: BodyDecoder, batch: Batch, bodies: Buffer
    ) -> tuple[BatchResult, Words] | None:
        """Answer requests that are decoded and run as one; None if they need separate treatment."""
        (sent,) = batch.sent
        try:
            decoded = decoder.decode_alike(
                sent, bodies, max_rows=batch.max_rows, run_rows=batch.run_rows
            )
            if decoded is None:
                return None
            words = self._run(decoded.rows, 0, decoded.extents)
            if not is_sound(words, self._spec):
                return None
        except DeadlineExceeded as error:
            for one in _one_by_one(batch.sent):
                self._refuse(one, error)
            return BatchResult([], self._refused, 0), self._words(0)
        except Exception as error:  # noqa: BLE001 - an uploaded model; each request is then run again
            note(error)
            return None
        head = ResponseHead(decoded.n_rows, decoded.wanted)
        return BatchResult([RowRange(sent.number, decoded.n_rows, head, sent.count)], [], 0), words

    def _accept(self, batch: Batch, bodies: memoryview) -> None:
        """Read some bodies: until it takes long, or those that wait have as many bytes as one may.

        They may take half the time of a run, so that time is left for the run.
        """
        start = 0
        for sent in _one_by_one(batch.sent):
            body: Buffer = bodies[start : start + sent.length]
            # Rows may be views of a body. The next frame overwrites a short one; one of several
            # would keep the memory of the others.
            is_kept = 2 * sent.length > len(bodies) > INBOX_BYTES
            self._unread.append((sent, body if is_kept else bytes(body)))
            start += sent.length
        begun = now = time.monotonic()
        limits = BodyLimits(batch.max_bytes, batch.max_rows, until=begun + batch.each_run / 2)
        n_bytes = sum([one.n_bytes for one in self._waiting.values()])
        while self._unread and now - begun < READING_SECONDS and n_bytes <= batch.max_bytes:
            sent, body = self._unread.popleft()
            try:
                waiting = self._decoded(sent, body, limits)
                limits.check_time("body")
            except ServiceError as error:
                self._refuse(sent, error)
            except Exception as error:  # noqa: BLE001 - uploaded bytes
                self._refuse(sent, _unknown(error))
            else:
                self._waiting[sent.number] = waiting
                n_bytes += waiting.n_bytes
            now = time.monotonic()

    def _decoded(self, sent: SentBodies, body: Buffer, limits: BodyLimits) -> PendingRequest:
        decoded = self._decoder.decode(sent, body, limits)
        signature = tuple((name, array.shape[1:]) for name, array in decoded.rows.items())
        return PendingRequest(sent.number, decoded, signature)

    def _refuse(self, request: "SentBodies | PendingRequest", error: ServiceError) -> None:
        self._refused.append(RequestError(request.number, describe(error)))

    def _answer(self, turns: list[RequestSlice]) -> tuple[list[RowRange], Words]:
        """Run rows together; if that fails, run each half of the requests by itself."""
        try:
            extents = turns[0].extents() if len(turns) == 1 else {}
            words = self._run(joined(turns), turns[0].start, extents)
            for place, name in enumerate(self._spec.supplied, -len(self._spec.supplied)):
                words[:, place] = np.concatenate([turn.supplied(name) for turn in turns])
        except DeadlineExceeded as error:
            # There is no time left to find the slow request.
            for turn in turns:
                self._fail(turn, error)
            return [], self._words(0)
        except Exception as error:  # noqa: BLE001 - an uploaded model
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

    def _sound(self, turns: list[RequestSlice], words: Words) -> tuple[list[RowRange], Words]:
        """Return valid answers; refuse requests with a row without one."""
        if is_sound(words, self._spec):
            return [self._part(turn) for turn in turns], words
        parts, kept, start = [], [self._words(0)], 0
        for turn in turns:
            stop = start + turn.stop - turn.start
            try:
                refuse_unsound(words[start:stop], self._spec, LOCATION, turn.start)
            except InvalidInput as error:
                self._fail(turn, error)
            else:
                parts.append(self._part(turn))
                kept.append(words[start:stop])
            start = stop
        return parts, np.concatenate(kept)

    def _fail(self, turn: RequestSlice, error: ServiceError) -> None:
        self._waiting.pop(turn.of.number, None)
        self._refuse(turn.of, error)

    def _part(self, turn: RequestSlice) -> RowRange:
        head = None
        if turn.start == 0:
            decoded = turn.of.decoded
            head = ResponseHead(decoded.n_rows, decoded.wanted, decoded.by_position)
        return RowRange(turn.of.number, turn.stop - turn.start, head)

    def _run(self, rows: dict[str, Array], start: int, extents: Mapping[str, RowExtents]) -> Words:
        return self._model.matrix(rows, location=LOCATION, start=start, extents=extents)

    def _words(self, n_rows: int) -> Words:
        return np.empty((n_rows, self._spec.n_words), np.float32)


def _one_by_one(sent: Iterable[SentBodies]) -> Iterator[SentBodies]:
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
