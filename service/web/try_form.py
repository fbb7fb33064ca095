"""The form of one sample: a file, or its numbers, made into a request for a prediction."""

from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from service.bodies import JSON, NPY, NPZ
from service.errors import InvalidInput, MalformedRequest
from service.operations.taken_sample import TakenSample
from service.web.handed_on import Sent

MOST_CHARACTERS = 1024**2
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_PICTURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"RIFF": "image/webp"}


class _InMemory(MultiPartParser):
    """It was received whole, so nothing is to be written to a disk."""

    spool_max_size = 2**62
    max_part_size = MOST_CHARACTERS


@dataclass(frozen=True)
class TryForm:
    """What somebody has filled in."""

    file_name: str
    content: bytes
    numbers: str


async def read_form(request: Request) -> TryForm:
    """Return the form of a request.

    Raises
    ------
    MalformedRequest
        If the form cannot be read.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise MalformedRequest.at("body", "expected multipart/form-data")
    parser = _InMemory(
        request.headers,
        request.stream(),
        max_files=1,
        max_fields=2,
        max_part_size=MOST_CHARACTERS,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise MalformedRequest.at("body", "expected a form of one file and its numbers") from error
    file, numbers = form.get("file"), form.get("numbers")
    try:
        return TryForm(
            file_name=(file.filename or "") if isinstance(file, UploadFile) else "",
            content=await file.read() if isinstance(file, UploadFile) else b"",
            numbers=numbers if isinstance(numbers, str) else "",
        )
    finally:
        await form.close()


def sent_by(form: TryForm, taken: TakenSample, calibration: str) -> Sent:
    """Return what is to be asked of a calibration, by its id.

    Raises
    ------
    InvalidInput
        If there is no sample in the form.
    """
    if form.file_name:
        return _of_file(form.content, form.file_name, taken, calibration)
    if form.numbers.strip():
        return Sent(JSON, taken.json_body(calibration, form.numbers))
    raise InvalidInput.at("file", "expected a file, or numbers beside it")


def _of_file(content: bytes, name: str, taken: TakenSample, calibration: str) -> Sent:
    """Return a file as it is, by what it begins with; JSON as numbers."""
    for magic, media_type in ((_NPY, NPY), (_ZIP, NPZ), *_PICTURES.items()):
        if content.startswith(magic):
            return Sent(media_type, content)
    if name.lower().endswith(".json"):
        try:
            return Sent(JSON, taken.json_body(calibration, content.decode()))
        except UnicodeDecodeError as error:
            raise InvalidInput.at("file", "expected JSON in UTF-8") from error
    expected = "a picture (JPEG, PNG or WebP), " if taken.has_pictures else ""
    raise InvalidInput.at("file", f"expected {expected}.npy, .npz or .json")
