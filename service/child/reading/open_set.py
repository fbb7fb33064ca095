"""Sets of samples: one reader for each format, chosen by the content of the file."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from service.child.magic_bytes import other_format
from service.child.reading import csv, parquet
from service.child.reading.arrays import numpy_files
from service.child.reading.arrays.npy_header import MAGIC as NPY_MAGIC
from service.child.reading.arrays.zip_archive import MAGIC as ZIP_MAGIC
from service.child.reading.arrays.zip_archive import first_name, is_torch
from service.child.reading.pictures import archives
from service.child.reading.pictures import picture_dataset as pictures
from service.child.reading.pictures.picture_files import is_picture
from service.child.reading.set_file import SetFile
from service.errors import InvalidDataset, TooLarge, UnsupportedFormat
from service.runner.messages.dataset import Dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import AS_IT_IS, Reading, SetContext

# The longest prefix of any format, and enough text to tell it from binary data.
HEAD_BYTES = 4096

_EXPECTED = "expected .npz, .npy, .parquet, .csv, or pictures in .zip or .tar"

FORMATS: dict[str, Callable[[SetFile, SetContext], Dataset]] = {
    pictures.TAR_FORMAT: pictures.open_tar,
    pictures.ZIP_FORMAT: pictures.open_zip,
    numpy_files.NPZ_FORMAT: numpy_files.open_npz,
    numpy_files.NPY_FORMAT: numpy_files.open_npy,
    parquet.FORMAT: parquet.open_parquet,
    csv.FORMAT: csv.open_csv,
}


@contextmanager
def open_dataset(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool = True,
    reading: Reading = AS_IT_IS,
) -> Iterator[Dataset]:
    """Open a set of samples and check everything except its values.

    Shapes, dtypes, names, sizes and labels are checked here. The values of inputs, outputs and
    supplied columns are checked when their batches are read. ``location`` is the part or argument
    that begins every violation. A set without labels is refused unless ``labels_required`` is
    false. ``reading`` has the caller's options.

    The file is parsed in this process: open uploaded files in a sandboxed process only.

    Raises
    ------
    UnsupportedFormat
        If the format of the file is not supported.
    InvalidDataset
        If it breaks a rule, or is damaged.
    TooLarge
        If it claims more than ``limits`` allow.
    """
    with ExitStack() as stack:
        file, labels = stack.enter_context(closing(SetFile(path))), None
        if reading.labels is not None:
            labels = stack.enter_context(closing(SetFile(reading.labels)))
        yield read_set(file, labels, SetContext(location, limits, reading, labels_required))


def read_set(file: SetFile, labels: SetFile | None, ctx: SetContext) -> Dataset:
    """Read a set from open files; see `open_dataset`."""
    found = format_of(file)
    if found is None:
        raise unsupported(file.read_at(HEAD_BYTES, 0), location=ctx.location)
    if labels is None:
        return FORMATS[found](file, ctx)
    if found == numpy_files.NPY_FORMAT:
        return numpy_files.open_npy(file, ctx, labels)
    raise InvalidDataset.at(
        f"{ctx.location}_labels",
        f"expected labels beside an .npy array only; {ctx.location} is a file of the "
        f"format {found}, which has its own",
    )


def format_of(file: SetFile) -> str | None:
    """Return the format of a file by its content; None if it is not supported."""
    head = file.read_at(HEAD_BYTES, 0)
    # Tar first: it begins with the name of a file, which may look like another format.
    if archives.is_tar(head):
        return pictures.TAR_FORMAT
    if head.startswith(ZIP_MAGIC) and not is_torch(head):
        return pictures.ZIP_FORMAT if _holds_pictures(file, head) else numpy_files.NPZ_FORMAT
    if head.startswith(NPY_MAGIC):
        return numpy_files.NPY_FORMAT
    if head.startswith(parquet.MAGIC):
        return parquet.FORMAT
    return csv.FORMAT if csv.is_text(head) else None


def _holds_pictures(file: SetFile, head: bytes) -> bool:
    """Tell whether a zip archive holds pictures, or other files but no arrays.

    If its directory cannot be read, or is too long for arrays, the first member decides.
    """
    most = numpy_files.MAX_DIRECTORY_BYTES
    refusal = numpy_files.directory_too_long("")
    try:
        names = zipfile.ZipFile(file.open_limited(most=most, refusal=refusal)).namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, TooLarge):
        names = [first_name(head)] if first_name(head) else []
    for name in names:
        if is_picture(name):
            return True
        if name.endswith(".npy"):
            return False
    return bool(names)


def unsupported(head: bytes, *, location: str) -> UnsupportedFormat:
    """Return the error for a file of an unsupported format, by its first bytes."""
    if not head:
        return UnsupportedFormat.at(location, "expected a set of samples, got an empty file")
    name, fix = other_format(head) or ("bytes of another kind; text is in UTF-8", "")
    if is_torch(head):
        name, fix = "a PyTorch file, a pickle, which is never loaded", "write arrays with np.savez"
    return UnsupportedFormat.at(location, f"{_EXPECTED}, got {name}" + (f"; {fix}" if fix else ""))
