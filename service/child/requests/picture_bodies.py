"""Bodies of pictures: ``image/jpeg``, ``image/png``, ``image/webp``, and forms of several."""

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.child.requests.limits import BodyLimits
from service.child.requests.predict_request import PredictRequest, SentPicture
from service.errors import InvalidInput, MalformedRequest, TooLarge, shown

PLACE = "body"


def read_picture_body(body: bytes, _limits: BodyLimits) -> PredictRequest:
    """Return the picture, not yet decoded; its bytes tell its format."""
    return PredictRequest({}, pictures=(SentPicture(PLACE, body),))


NO_PICTURE = "expected at least one picture, got none"
# RFC 2046, and the two dashes before it.
LONGEST_DELIMITER = 72
_DASHES = b"--"


def read_multipart_body(body: bytes, limits: BodyLimits) -> PredictRequest:
    """Return the pictures, not yet decoded; the names of the parts mean nothing.

    Raises
    ------
    MalformedRequest
        If this is not a form, or it ends early.
    InvalidInput
        If there is no part.
    TooLarge
        If there are more rows than is allowed.
    """
    form = _Pictures(limits.max_rows)
    try:
        form.read(body, _boundary(body))
    except FormParserError as error:
        raise MalformedRequest.at(PLACE, "expected multipart/form-data, whole") from error
    if not form.is_whole:
        raise MalformedRequest.at(PLACE, "the form ends before its last boundary")
    if not form.pictures:
        raise InvalidInput.at(PLACE, NO_PICTURE)
    return PredictRequest({}, pictures=tuple(form.pictures))


def _boundary(body: bytes) -> bytes:
    """Return the boundary, which is at the beginning of a form.

    The header of the request is not used.
    """
    delimiter = body[: LONGEST_DELIMITER + 2].partition(b"\r\n")[0]
    if not delimiter.startswith(_DASHES) or len(delimiter) > LONGEST_DELIMITER:
        raise MalformedRequest.at(PLACE, "expected multipart/form-data, beginning with a boundary")
    boundary = delimiter[len(_DASHES) :]
    if not boundary:
        raise MalformedRequest.at(PLACE, "expected a boundary of 1 to 70 characters")
    if boundary.endswith(_DASHES) and body.rstrip() == delimiter:
        raise InvalidInput.at(PLACE, NO_PICTURE)
    return boundary


class _Pictures:
    """Collects the parts of a form by callbacks of the parser."""

    def __init__(self, max_rows: int) -> None:
        self.pictures: list[SentPicture] = []
        self.is_whole = False
        self._max_rows = max_rows
        self._pieces: list[bytes] = []
        self._field, self._value = b"", b""
        self._headers: dict[bytes, bytes] = {}

    def read(self, body: bytes, boundary: bytes) -> None:
        """Parse a form."""
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_end": self._whole,
            },
        )
        parser.write(body)
        parser.finalize()

    def _begin(self) -> None:
        if len(self.pictures) == self._max_rows:
            raise TooLarge.at(PLACE, f"expected at most {self._max_rows} rows, got more pictures")
        self._pieces, self._headers = [], {}

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._pieces.append(data[start:end])

    def _end(self) -> None:
        place = f"pictures[{len(self.pictures)}]"
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        file_name = options.get(b"filename", b"").decode("utf-8", "replace")
        if file_name:
            place += f" ({shown(file_name)})"
        encoding = self._headers.get(b"content-transfer-encoding", b"binary").lower()
        if encoding not in (b"binary", b"8bit", b"7bit"):
            raise InvalidInput.at(place, "expected the picture's own bytes, not encoded ones")
        self.pictures.append(SentPicture(place, b"".join(self._pieces)))

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field, self._value = b"", b""

    def _whole(self) -> None:
        self.is_whole = True
