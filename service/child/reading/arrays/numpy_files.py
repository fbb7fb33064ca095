"""Sets of arrays: .npz archives, and .npy files with their labels in another file."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import numpy as np

from howsure.limits import MAX_NAME_LENGTH
from howsure.statistics.arrays import Labels
from howsure.statistics.measures import SCORE
from service.child.reading.arrays.array_file import ArrayFile
from service.child.reading.arrays.npy_header import TEXT
from service.child.reading.arrays.zip_archive import ZipArchive
from service.child.reading.checks import (
    BOTH_CLASSES,
    SUPPLIED_PREFIX,
    check_inputs,
    check_n_classes,
    check_n_samples,
    check_sizes,
    check_supplied,
    is_plain_name,
    may_lack_values,
    supplied_names,
)
from service.child.reading.class_indices import labels_by_name, labels_of_numbers
from service.child.reading.columns import CORRECT_COLUMN
from service.child.reading.output_checks import check_outputs
from service.child.reading.pairs import (
    PairSet,
    check_pairs,
    reads_pairs,
    require_columns,
)
from service.child.reading.sampling_design import (
    GROUP,
    check_design,
    design_columns,
)
from service.child.reading.set_file import SetFile
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.dataset import (
    LABELS,
    MAX_ARRAYS,
    AnyArray,
    ArrayInfo,
    Batch,
    DatasetInfo,
    DatasetKind,
)
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

NPZ_FORMAT, NPY_FORMAT = "npz", "npy"
# `zipfile` makes an object of each entry of the directory.
MAX_DIRECTORY_BYTES = MEBIBYTE

_SUFFIX = ".npy"
_MATRIX_RANK = 2
_PAIR_DTYPES = {SCORE: "iuf", CORRECT_COLUMN: "biuf", "weight": "iuf", GROUP: "iu"}
# By column of the sampling design: the kinds of dtype that it may have, what one value is, and the
# end of the refusal.
_DESIGN_DTYPES = {"weight": ("iuf", "number"), GROUP: ("iu", "integer", "; number the groups")}


def npz_arrays(
    stream: BinaryIO, *, location: str, max_inflated_bytes: int
) -> Mapping[str, ArrayFile]:
    """Return the arrays of an .npz archive by their names."""
    archive = ZipArchive(
        stream,
        location=location,
        max_inflated_bytes=max_inflated_bytes,
        place=lambda member: f"{location}.{_array_name(member, location)}",
    )
    arrays: dict[str, ArrayFile] = {}
    for member in archive.members:
        name = _array_name(member, location)
        place = f"{location}.{name}"
        if name in arrays:
            raise InvalidDataset.at(place, "expected each array once, got it twice")
        arrays[name] = ArrayFile(
            partial(archive.open, member), member.file_size, place, may_be_text=name == LABELS
        )
    return arrays


def directory_too_long(location: str) -> TooLarge:
    """Return the error for an archive with too many members, or too long names."""
    return TooLarge.at(
        location,
        f"expected names of arrays in at most {MAX_DIRECTORY_BYTES} bytes; send fewer arrays",
    )


def open_npz(file: SetFile, ctx: SetContext) -> "ArraySet | PairSet":
    """Open an .npz archive and check its headers and its labels, if it has any."""
    refusal = directory_too_long(ctx.location)
    stream = file.open_limited(most=MAX_DIRECTORY_BYTES, refusal=refusal)
    limit = ctx.limits.max_inflated_bytes
    arrays = npz_arrays(stream, location=ctx.location, max_inflated_bytes=limit)
    if reads_pairs(arrays.keys(), ctx):
        return _pairs(arrays, ctx)
    if ctx.labels_required and LABELS not in arrays:
        found = ", ".join(f"`{name}`" for name in list(arrays)[:10]) or "no array"
        raise ctx.invalid(
            f"expected an array `{LABELS}` with the class of each sample, got {found}", LABELS
        )
    return ArraySet(arrays, ctx, NPZ_FORMAT)


def _pairs(arrays: Mapping[str, ArrayFile], ctx: SetContext) -> PairSet:
    """Read an archive of pairs, whose columns are arrays."""
    wanted = require_columns(list(arrays), ctx)
    n_samples = arrays[SCORE].header.n_rows
    check_n_samples(n_samples, place=ctx.place(SCORE), limits=ctx.limits)
    columns: dict[str, AnyArray] = {}
    for name in wanted:
        array, header = arrays[name], arrays[name].header
        array.check_size()
        if header.shape != (n_samples,) or header.dtype.kind not in _PAIR_DTYPES[name]:
            raise InvalidDataset.at(
                array.place,
                f"expected one number per sample, {n_samples} in all, got {header.dtype.name} of "
                f"shape {header.shape}",
            )
        (values,) = array.rows(n_samples)
        columns[name] = check_pairs(values, name, 0, ctx)
    left = [name for name in arrays if name not in wanted]
    return PairSet(columns, ctx, file_format=NPZ_FORMAT, left=left)


def open_npy(file: SetFile, ctx: SetContext, labels_file: SetFile | None = None) -> "ArraySet":
    """Open an array and its labels file, and check both headers and the labels."""
    labels_place = f"{ctx.location}_labels"
    if labels_file is None and ctx.labels_required:
        option = "--evaluation-labels" if ctx.location == "evaluation" else "--labels"
        raise InvalidDataset.at(
            labels_place,
            "expected the labels of this array, which has none itself; send an .npy array of "
            f"class indices as the part {labels_place} ({option})",
        )
    name = ctx.reading.kind or "inputs"
    arrays: dict[str, ArrayFile] = {name: ArrayFile(file.open, file.size, ctx.place(name))}
    if labels_file is not None:
        arrays[LABELS] = ArrayFile(
            labels_file.open, labels_file.size, labels_place, may_be_text=True
        )
    return ArraySet(arrays, ctx, NPY_FORMAT)


class ArraySet:
    """A set of arrays; each iteration over its batches reads the files again."""

    def __init__(self, arrays: Mapping[str, ArrayFile], ctx: SetContext, file_format: str) -> None:
        for array in arrays.values():
            array.check_size()
        self.info = _check_headers(arrays, ctx, file_format)
        self._arrays = arrays
        self._ctx = ctx
        self._labels = self._read_labels()

    def labels(self) -> Labels:
        """Return the labels of all samples; meaningless zeros if the set is unlabelled."""
        return self._labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        rows = {name: array.rows(size) for name, array in self._arrays.items() if name != LABELS}
        for start in range(0, self.info.n_samples, size):
            yield Batch(
                start,
                {name: self._checked(next(rows[name]), name, start) for name in self.info.arrays},
                self._labels[start : start + size].copy(),
                {
                    name: check_supplied(
                        next(rows[f"{SUPPLIED_PREFIX}{name}"]),
                        place=self._ctx.place(f"{SUPPLIED_PREFIX}{name}"),
                        start=start,
                    )
                    for name in self.info.supplied
                },
                {
                    name: check_design(next(rows[name]), name, start=start, ctx=self._ctx)
                    for name in self.info.design
                },
            )

    def _read_labels(self) -> Labels:
        """Return the labels; numbers that name classes are added to the description."""
        if not self.info.labelled:
            return np.zeros(self.info.n_samples, np.int64)
        file, most = self._arrays[LABELS], self._ctx.limits.max_classes
        (labels,) = file.rows(self.info.n_samples)
        reading = self._ctx.reading
        if labels.dtype.kind in TEXT:
            names, codes = _names(labels, file.place)
            classes = labels_by_name(names, codes, reading, place=file.place, max_classes=most)
        else:
            classes = labels_of_numbers(
                labels, reading, place=file.place, n_classes=self.info.n_classes, max_classes=most
            )
        self.info = replace(
            self.info,
            class_map=classes.class_map,
            is_numbered_by_name=classes.is_numbered_by_name,
            notes=(*self.info.notes, *classes.notes),
        )
        return classes.labels

    def _checked(self, values: AnyArray, name: str, start: int) -> AnyArray:
        place, kind = self._ctx.place(name), self.info.kind
        if kind == "inputs":
            may_lack = may_lack_values(values.shape, values.dtype.name)
            check_inputs(values, place=place, start=start, may_lack=may_lack)
        elif kind != "pairs":
            check_outputs(values, kind=kind, place=place, start=start)
        return values


def _check_headers(
    arrays: Mapping[str, ArrayFile], ctx: SetContext, file_format: str
) -> DatasetInfo:
    """Return the description of a set, by the names, shapes and dtypes of its arrays."""
    labelled = LABELS in arrays
    if labelled:
        _check_labels_header(arrays[LABELS])
    supplied = supplied_names(arrays, location=ctx.location)
    design = design_columns(arrays) if file_format == NPZ_FORMAT else ()
    data = [
        name
        for name in arrays
        if name not in (LABELS, *design) and not name.startswith(SUPPLIED_PREFIX)
    ]
    if len(data) > MAX_ARRAYS:
        raise TooLarge.at(ctx.location, f"expected at most {MAX_ARRAYS} arrays, got {len(data)}")
    kind = _kind(data, ctx)
    counted = LABELS if labelled and file_format == NPZ_FORMAT else data[0]
    n_samples = arrays[counted].header.n_rows
    check_n_samples(n_samples, place=arrays[counted].place, limits=ctx.limits)
    for name, array in arrays.items():
        if array.header.n_rows != n_samples:
            what = "labels" if name == LABELS else "rows"
            raise InvalidDataset.at(
                array.place,
                f"expected {n_samples} {what}, as many as `{counted}` has, got "
                f"{array.header.n_rows}",
            )
        if name.startswith(SUPPLIED_PREFIX):
            _check_column(array, "f", "float")
        if name in design:
            _check_column(array, *_DESIGN_DTYPES[name])
    n_classes = None if kind == "inputs" else _count_classes(arrays[kind], ctx)
    infos = {name: ArrayInfo(a.header.dtype.name, a.header.shape) for name, a in arrays.items()}
    info = DatasetInfo(
        kind=kind,
        format=file_format,
        arrays={name: infos[name] for name in data},
        n_samples=n_samples,
        n_classes=n_classes,
        supplied=supplied,
        labelled=labelled,
        design=design,
    )
    check_sizes(info, ctx)
    return info


def _kind(data: Sequence[str], ctx: SetContext) -> DatasetKind:
    if not data:
        raise ctx.invalid(
            "expected the model's inputs by name (or `inputs`), or `logits`, or `probabilities`"
        )
    kind: DatasetKind = "inputs"
    if "logits" in data or "probabilities" in data:
        kind = "logits" if "logits" in data else "probabilities"
    if kind != "inputs" and len(data) > 1:
        names = ", ".join(f"`{name}`" for name in data)
        raise ctx.invalid(
            f"expected inputs or `logits` or `probabilities`, one of them alone, got {names}"
        )
    return kind


def _check_labels_header(labels: ArrayFile) -> None:
    header = labels.header
    if len(header.shape) > 1:
        fix = (
            "labels.ravel()"
            if header.shape[1:] == (1,)
            else "labels.argmax(axis=1), if one-hot; several labels a row are not supported"
        )
        raise InvalidDataset.at(
            labels.place,
            f"expected one class index per sample, got shape {header.shape}; write {fix}",
        )
    if header.dtype.kind not in "biuf" + TEXT:
        raise InvalidDataset.at(
            labels.place,
            f"expected one class index per sample, got {header.dtype.name}; number the classes",
        )


def _names(labels: AnyArray, place: str) -> tuple[list[str], Labels]:
    """Return the distinct names of text labels, and for each sample the position of its name."""
    distinct, codes = np.unique(labels, return_inverse=True)
    names = []
    for position, name in enumerate(distinct):
        try:
            names.append(name.decode() if isinstance(name, bytes) else name.item())
            names[-1].encode()
        except (ValueError, SystemError) as error:
            row = int(np.argmax(codes == position))
            raise InvalidDataset.at(f"{place}[{row}]", "expected text in UTF-8") from error
        if not 0 < len(names[-1]) <= MAX_NAME_LENGTH:
            row = int(np.argmax(codes == position))
            raise InvalidDataset.at(
                f"{place}[{row}]",
                f"expected the name of a class, of 1 to {MAX_NAME_LENGTH} characters, got "
                f"{len(names[-1])}; leave out samples without a label",
            )
    return names, codes


def _check_column(array: ArrayFile, kinds: str, expected: str, fix: str = "") -> None:
    """Refuse an array that is not one number of these kinds of dtypes per sample."""
    dtype, shape = array.header.dtype, array.header.shape
    if len(shape) > 1 or dtype.kind not in kinds:
        raise InvalidDataset.at(
            array.place,
            f"expected one {expected} per sample, got {dtype.name} of shape {shape}{fix}",
        )


def _count_classes(outputs: ArrayFile, ctx: SetContext) -> int:
    dtype, shape = outputs.header.dtype, outputs.header.shape
    if len(shape) != _MATRIX_RANK:
        raise InvalidDataset.at(
            outputs.place,
            f"expected shape (samples, classes), got {shape}; "
            + (BOTH_CLASSES if len(shape) == 1 else "write a row per sample"),
        )
    if not np.issubdtype(dtype, np.floating):
        raise InvalidDataset.at(
            outputs.place, f"expected floats, got {dtype.name}; write .astype('float32')"
        )
    check_n_classes(shape[1], place=outputs.place, limits=ctx.limits)
    return shape[1]


def _array_name(member: zipfile.ZipInfo, location: str) -> str:
    """Return the array's name, which may be that of a model's input, such as ``block/x:0``."""
    name = member.filename
    shown = ascii(name[:MAX_NAME_LENGTH])
    if not name.endswith(_SUFFIX) or name == _SUFFIX:
        raise InvalidDataset.at(
            location, f"expected .npy arrays and nothing else, got the member {shown}"
        )
    name = name.removesuffix(_SUFFIX)
    if len(name) > MAX_NAME_LENGTH or not is_plain_name(name):
        raise InvalidDataset.at(
            location, f"expected members with the plain names of arrays, got {shown}"
        )
    return name
