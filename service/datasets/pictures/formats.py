"""The two formats that pictures come in: zip and tar archives."""

from pathlib import Path

from service.datasets.limits import DatasetLimits
from service.datasets.pictures.archive import Archive
from service.datasets.pictures.picture_dataset import PictureDataset, open_pictures
from service.datasets.pictures.tar_archive import TarArchive
from service.datasets.pictures.zip_archive import ZipPictures
from service.datasets.reading import Reading

ZIP_FORMAT = "zip"
TAR_FORMAT = "tar"


def open_zip(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> PictureDataset:
    """Open a zip archive of pictures, having read its directory and labels."""
    archive = ZipPictures(path, location=location, max_inflated_bytes=limits.max_inflated_bytes)
    return _opened(archive, ZIP_FORMAT, limits, reading, labels_required=labels_required)


def open_tar(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> PictureDataset:
    """Open a tar archive of pictures, having read its headers and labels."""
    archive = TarArchive(path, location=location)
    return _opened(archive, TAR_FORMAT, limits, reading, labels_required=labels_required)


def _opened(
    archive: Archive,
    file_format: str,
    limits: DatasetLimits,
    reading: Reading,
    *,
    labels_required: bool,
) -> PictureDataset:
    try:
        return open_pictures(
            archive,
            file_format=file_format,
            limits=limits,
            labels_required=labels_required,
            reading=reading,
        )
    except BaseException:
        archive.close()
        raise
