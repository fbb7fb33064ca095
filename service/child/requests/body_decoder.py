"""Decoding of request bodies to rows for a model."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType

import msgspec
import numpy as np

from howsure.preprocessing import PIXELS
from howsure.statistics.input_ranges import RowExtents, finite_row_extents
from service.child.onnx.model_inputs import ModelInputs
from service.child.requests.array_bodies import read_npy_body
from service.child.requests.json_body import JsonRows
from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import BODIES, JSON, NPY, ROWS_OF_SETS, SET_ROWS
from service.child.requests.named_rows import RECORDS, NamedRows
from service.child.requests.open_inference import read_infer
from service.child.requests.predict_request import (
    PredictRequest,
    SentPicture,
    check_finite,
    model_inputs,
    supplied_columns,
)
from service.child.requests.tensors import check_shape, is_surely_finite
from service.errors import InvalidInput
from service.graph.description import TensorSpec
from service.runner.messages.channel import INBOX_BYTES
from service.runner.messages.dataset import batch_of
from service.runner.messages.frames import DTYPES, Array, Buffer, decode
from service.runner.messages.open_inference import (
    RequestedOutputs,
    TensorMetadata,
    datatype_of,
    requested_outputs,
)
from service.runner.messages.predict_batches import SentBodies

# Copies of numpy begin at a multiple of so many bytes, and some kernels round by it.
VECTOR_BYTES = 16


class RawBodyLayout:
    """The offsets of the rows in a body of JSON and raw tensors, for all bodies with that JSON.

    Parameters
    ----------
    head
        The JSON.
    sent
        The arrays after it, by name in the order of their bytes.
    rows
        The same arrays in the order of the model's inputs.
    wanted
        The outputs that the request wants.

    Attributes
    ----------
    n_bytes
        The length of a body.
    n_rows
        How many rows it has.
    """

    def __init__(
        self,
        head: bytes,
        sent: Mapping[str, Array],
        rows: Mapping[str, Array],
        wanted: RequestedOutputs,
    ) -> None:
        self.head = head
        self.wanted = wanted
        self.n_rows = len(next(iter(rows.values())))
        places, end = {}, len(head)
        for name, array in sent.items():
            places[name] = end
            end += array.nbytes
        self.n_bytes = end
        # The name of each tensor, its field in a body, and the shape of one row.
        self._tensors = [(name, f"f{at}", a.shape[1:]) for at, (name, a) in enumerate(rows.items())]
        self._body = np.dtype(
            {
                "names": [field for _, field, _ in self._tensors],
                "formats": [(array.dtype, array.shape) for array in rows.values()],
                "offsets": [places[name] for name in rows],
                "itemsize": end,
            }
        )

    def begins_all(self, bodies: Buffer) -> bool:
        """Tell whether the other bodies begin with the same JSON."""
        head, size = self.head, len(self.head)
        for start in range(self.n_bytes, len(bodies), self.n_bytes):
            if bytes(bodies[start : start + size]) != head:
                return False
        return True

    def read(self, bodies: Buffer) -> dict[str, Array]:
        """Return the rows of consecutive bodies; those of a large one may be views of it."""
        found = np.frombuffer(bodies, self._body)
        may_be_views = len(bodies) == self.n_bytes > INBOX_BYTES
        rows = {}
        for name, field, shape in self._tensors:
            array = found[field]
            # The runtime needs aligned numbers.
            if not (may_be_views and array.ctypes.data % VECTOR_BYTES == 0):
                array = array.copy()
            rows[name] = array.reshape(-1, *shape)
        return rows


OIP = "oip"
LOCATION = "inputs"
NO_PICTURES = (
    "no pictures, for its config has no preprocessing; calibrate with `preprocessing`, such as "
    "imagenet, or send the model's `inputs`"
)
MOST_LAYOUTS = 256
LONGEST_LAYOUT_BYTES = 2048
MOST_DIGITS = 9
# In shorter bodies, numbers are not counted.
LARGE_BYTES = 1024**2


class Decoded(msgspec.Struct, frozen=True, eq=False):
    """The rows of a request, ready for the model, and the rest of the request.

    ``by_position`` tells that rows came without the column names that the calibration has.
    ``extents`` are those of inputs for which they were computed.
    """

    rows: dict[str, Array]
    n_rows: int
    wanted: RequestedOutputs | None
    supplied: Mapping[str, Array]
    by_position: bool = False
    extents: Mapping[str, RowExtents] = MappingProxyType({})


class BodyDecoder:
    """Reads bodies and checks them against a model's inputs.

    Those that ``may_lack`` values may have NaN. ``supplied`` are the names of the uncertainties
    that each body brings. ``ranged`` are the inputs whose extents the model's answers need.
    """

    def __init__(
        self,
        inputs: ModelInputs,
        may_lack: Collection[str] = (),
        supplied: Sequence[str] = (),
        ranged: Sequence[str] = (),
    ) -> None:
        self._inputs = inputs
        self._may_lack = may_lack
        self._supplied = supplied
        self._ranged = ranged
        self._specs = specs = inputs.specs
        self._names = inputs.names
        self._json_rows = None
        if len(specs) == 1 and not supplied:
            self._json_rows = JsonRows.of(specs[0].dtype, specs[0].shape)
        self._named_rows = NamedRows(inputs.columns, may_lack=may_lack)
        self._has_names = bool(inputs.columns)
        # Pixels may come in any size; they are resized for the model.
        numbers = None if inputs.preprocessing else _numbers_a_row(specs)
        self._numbers_a_row = None if numbers is None else numbers + self._named_rows.n_commas
        self._layouts: OrderedDict[tuple[bytes, int], RawBodyLayout] = OrderedDict()

    def decode(self, sent: SentBodies, body: Buffer, limits: BodyLimits) -> Decoded:
        """Read a body.

        Raises
        ------
        MalformedRequest, InvalidInput, TooLarge, UnsupportedFormat
            If it breaks a rule.
        """
        head = _json_before_tensors(sent, body)
        if head is None:
            if len(body) > LARGE_BYTES:
                limits = limits.of_rows_of(self._numbers_a_row)
                if sent.media_type == JSON:
                    limits.check_json(bytes(body))
            return self._plain(sent, body, limits) or self._read(sent, body, limits)[0]
        layout = self._layouts.get((head, limits.max_rows))
        if layout is not None and layout.n_bytes == len(body):
            return self._by_layout(layout, body)
        decoded, request = self._read(sent, body, limits)
        self._remember((head, limits.max_rows), decoded, request, len(body))
        return decoded

    def decode_alike(
        self, sent: SentBodies, bodies: Buffer, *, max_rows: int, run_rows: int
    ) -> Decoded | None:
        """Read several bodies at once if all begin with the same JSON, of known layout.

        Return None if they do not, or hold more rows than fit into a run. ``rows`` are those of
        all bodies, ``n_rows`` is the number of rows of each.
        """
        head = _json_before_tensors(sent, bodies)
        layout = None if head is None else self._layouts.get((head, max_rows))
        if layout is None or layout.n_rows * sent.count > run_rows:
            return None
        if layout.n_bytes != sent.length or len(bodies) != sent.length * sent.count:
            return None
        return self._by_layout(layout, bodies) if layout.begins_all(bodies) else None

    def _by_layout(self, layout: RawBodyLayout, bodies: Buffer) -> Decoded:
        rows = layout.read(bodies)
        extents = self._check(rows)
        return Decoded(rows, layout.n_rows, layout.wanted, supplied={}, extents=extents)

    def _check(self, arrays: Mapping[str, Array]) -> Mapping[str, RowExtents]:
        """Refuse numbers that are not finite; return the extents of large inputs that need them.

        The extents prove that all numbers are finite, so each array is read only once.
        """
        extents = {}
        for name in self._ranged:
            array = arrays.get(name)
            if array is not None and array.nbytes > LARGE_BYTES and array.dtype.char == "f":
                ends = finite_row_extents(array)
                if ends is not None:
                    extents[name] = ends
        if not all(name in extents or is_surely_finite(arrays[name]) for name in arrays):
            check_finite(arrays, self._names, self._may_lack, self._inputs.columns)
        return extents

    def _plain(self, sent: SentBodies, body: Buffer, limits: BodyLimits) -> Decoded | None:
        """Read JSON of plain rows; None for all other bodies, invalid ones included."""
        if self._json_rows is None or sent.media_type != JSON:
            return None
        found = self._json_rows.read(
            bytes(body), calibration=sent.reference, max_rows=limits.max_rows
        )
        if found is None:
            return None
        rows = {self._names[0]: found}
        return Decoded(rows, len(found), None, supplied={}, by_position=self._has_names)

    def _read(
        self, sent: SentBodies, body: Buffer, limits: BodyLimits
    ) -> tuple[Decoded, PredictRequest]:
        request, wanted = read_request(sent, body, limits, inputs=self._metadata)
        arrays = self._arrays(request, limits)
        extents = self._check(arrays)
        rows = self._inputs.fitted(arrays, location=LOCATION, start=0)
        n_rows = len(next(iter(rows.values())))
        of = self._inputs.columns
        has_named_inputs = len(of) > 1 and all(len(columns) == 1 for columns in of.values())
        is_named = bool(request.named_rows) or sent.media_type == SET_ROWS or has_named_inputs
        decoded = Decoded(
            rows,
            n_rows,
            wanted=wanted,
            supplied=supplied_columns(request, self._supplied, n_rows=n_rows),
            by_position=self._has_names and not is_named,
            # Those of rows in another type may differ.
            extents={name: extents[name] for name in extents if rows[name] is arrays[name]},
        )
        return decoded, request

    def _arrays(self, request: PredictRequest, limits: BodyLimits) -> Mapping[str, Array]:
        """Return the arrays of a request, those of its pictures included."""
        if request.pictures:
            return {PIXELS: self._pixels(request.pictures, limits)}
        if request.named_rows and request.named_kind == LOCATION:
            return self._named_rows.read(request.named_rows, limits)
        arrays = request.arrays
        if self._inputs.are_pixels(arrays):
            place = f"{LOCATION}.{PIXELS}"
            check_shape(arrays[PIXELS].shape, location=place, max_rows=limits.max_rows)
            return arrays
        if arrays.keys() == {PIXELS} and PIXELS not in self._names:
            raise InvalidInput.at(
                f"{LOCATION}.{PIXELS}",
                f"the model has no such input, and the calibration takes {NO_PICTURES}",
            )
        known = {column for of in self._inputs.columns.values() for column in of}
        if arrays and arrays.keys() <= known and arrays.keys().isdisjoint(self._names):
            raise InvalidInput.at(LOCATION, f"expected rows, got columns; {RECORDS}")
        return model_inputs(request, self._names, max_rows=limits.max_rows)

    def _pixels(self, pictures: Sequence[SentPicture], limits: BodyLimits) -> Array:
        preprocessing = self._inputs.preprocessing
        if preprocessing is None:
            raise InvalidInput.at(pictures[0].place, f"this calibration takes {NO_PICTURES}")
        # Imported on use: few models take pictures.
        from service.child.requests.picture_rows import picture_rows  # noqa: PLC0415 - see above

        return picture_rows(pictures, preprocessing, limits)

    def _metadata(self) -> list[TensorMetadata]:
        """Return the model's inputs as the protocol describes them; -1 is a free size."""
        found = []
        for spec in self._specs:
            sizes = (spec.shape or (None,))[1:]
            shape = [-1, *(-1 if size is None else size for size in sizes)]
            found.append(TensorMetadata(spec.name, datatype_of(DTYPES[spec.dtype]), shape))
        return found

    def _remember(
        self, key: tuple[bytes, int], decoded: Decoded, request: PredictRequest, n_bytes: int
    ) -> None:
        """Keep the layout of a body if its arrays are the model's rows unchanged."""
        arrays = request.arrays
        as_sent = all(decoded.rows.get(name) is array for name, array in arrays.items())
        if not as_sent or request.supplied or decoded.wanted is None:
            return
        layout = RawBodyLayout(key[0], arrays, decoded.rows, decoded.wanted)
        if layout.n_bytes != n_bytes:
            return  # some of the numbers are in the JSON
        self._layouts[key] = layout
        if len(self._layouts) > MOST_LAYOUTS:
            self._layouts.popitem(last=False)


def read_request(
    sent: SentBodies,
    body: Buffer,
    limits: BodyLimits,
    *,
    inputs: Callable[[], Sequence[TensorMetadata]],
) -> tuple[PredictRequest, RequestedOutputs | None]:
    """Return a request and the outputs it wants; ``inputs`` are those of the protocol.

    The arrays of some formats are views of the body.

    Raises
    ------
    MalformedRequest, InvalidInput, TooLarge, UnsupportedFormat
        If the body breaks a rule.
    """
    if sent.media_type == OIP:
        asked, request = read_infer(sent, body, limits=limits, inputs=inputs)
        return request, requested_outputs(asked)
    if sent.media_type in ROWS_OF_SETS:
        batch = batch_of(decode(bytes(body)).tensors)
        return PredictRequest(batch.arrays, batch.supplied), None
    if sent.media_type == NPY:
        request = read_npy_body(body, limits)
    else:
        request = BODIES[sent.media_type](bytes(body), limits)
    if request.calibration not in (None, sent.reference):
        # The API process reads only the first name; a body with two is refused.
        raise InvalidInput.at("calibration", "expected one name, at the top of the body")
    return request, None


def _numbers_a_row(specs: Sequence[TensorSpec]) -> int | None:
    """Return how many numbers a row of all inputs has; None if that is free."""
    sizes = [(spec.shape or (None, None))[1:] for spec in specs]
    if any(size is None for row in sizes for size in row):
        return None
    return sum(prod(size or 1 for size in row) for row in sizes)


def _json_before_tensors(sent: SentBodies, body: Buffer) -> bytes | None:
    """Return the JSON of a request whose raw tensors follow it; None for other requests."""
    length = sent.header_length
    if length is None or not length.isascii() or not length.isdigit():
        return None
    if sent.media_type != OIP:
        return None
    if len(length) > MOST_DIGITS or not 0 < int(length) <= min(LONGEST_LAYOUT_BYTES, len(body)):
        return None
    n_bytes = int(length)
    return bytes(body[:n_bytes])
