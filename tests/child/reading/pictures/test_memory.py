"""Memory does not grow with the archive, with its index, or with what a picture claims."""

import zlib

import large_pictures
import pytest
from own_process import read_apart
from picture_files import png, write_tar

MIB = 2**20
# Few pixels are left of each picture, so that batches are nothing beside what is read.
CROP = (64, 64)


@pytest.mark.process
@pytest.mark.parametrize("write", [large_pictures.write_tar, large_pictures.write_zip])
def test_an_archive_takes_less_memory_than_it_is_large(path, write):
    write(path, 30 * MIB)
    n_pictures, grown = read_apart(path, crop=CROP)
    assert n_pictures > 300
    assert grown < 20


@pytest.mark.process
def test_pictures_that_claim_much_are_decoded_few_at_a_time(path):
    """Four pictures of 30 megapixels in 2 MB: 480 MB if all were decoded at once."""
    black = png(6_000, 5_000, 8, zlib.compress(bytes(5_000 * (1 + 3 * 6_000)), 1))
    path = write_tar(path, {f"{k % 2}/{k}.png": black for k in range(4)})
    n_pictures, grown = read_apart(path, 4, CROP)
    assert n_pictures == 4
    # One of them takes 120 MB, and may take twice that: no second one has room beside it.
    assert grown < 190
