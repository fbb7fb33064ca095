"""Memory does not grow with the archive, with its index, or with what a picture claims."""

import threading

import large_pictures
import pytest
from own_process import read_apart
from picture_files import opened, plain_png, png, write_tar

from service.child.pictures.decode import claimed_pixels
from service.child.reading.pictures.picture_dataset import in_order

MIB = 2**20
# Few pixels are left of each picture, so that batches are nothing beside what is read.
CROP = (64, 64)


@pytest.mark.process
@pytest.mark.parametrize("write", [large_pictures.write_tar, large_pictures.write_zip])
def test_an_archive_takes_less_memory_than_it_is_large(path, write):
    write(path, 60 * MIB)
    n_pictures, grown = read_apart(path, crop=CROP)
    assert n_pictures > 600
    assert grown < 40


@pytest.mark.process
def test_pictures_that_claim_much_are_decoded_few_at_a_time(path):
    """Four pictures of 30 megapixels in 2 MB: 480 MB if all were decoded at once."""
    black = png(6_000, 5_000, 8, bytes(5_000 * (1 + 3 * 6_000)))
    path = write_tar(path, {f"{k % 2}/{k}.png": black for k in range(4)})
    n_pictures, grown = read_apart(path, 4, CROP)
    assert n_pictures == 4
    # One of them takes 120 MB, and may take twice that: no second one has room beside it.
    assert grown < 190


def test_later_batches_are_not_read_in_advance(path):
    members = {f"{k % 2}/{k:03d}.png": plain_png(k % 250) for k in range(300)}
    with opened(write_tar(path, members | {"1/299.png": b"broken"})) as dataset:
        batches = dataset.batches(4)
        assert next(batches).start == 0
        batches.close()


CLAIMS = [
    (plain_png(1, width=40, height=30), 1200),
    (large_pictures.jpeg(0), large_pictures.WIDTH * large_pictures.HEIGHT),
    (b"\xff\xd8\xff\xe0\x00\x00", 64_000_000),
    (b"\xff\xd8\xff\xe0\x00\x00" * 99, 64_000_000),
    (b"", 64_000_000),
]


@pytest.mark.parametrize(("content", "pixels"), CLAIMS)
def test_the_claimed_size_is_read_from_the_head_of_a_picture(content, pixels):
    assert claimed_pixels(content) == pixels


@pytest.mark.parametrize(("kept_bytes", "most"), [(1, 16), (16 * MIB, 4), (1024 * MIB, 1)])
def test_the_memory_of_pictures_made_ahead_is_limited(kept_bytes, most):
    begun: list[int] = []

    def make(item: int) -> int:
        begun.append(item)
        return item

    for taken, made in enumerate(in_order(range(100), make, item_bytes=kept_bytes, max_threads=4)):
        assert made == taken
        assert len(begun) - taken <= most
    assert sorted(begun) == list(range(100))


def test_the_first_item_that_fails_is_reported():
    later_failed = threading.Event()

    def make(item: int) -> int:
        if item == 3:
            assert later_failed.wait(60)
        if item == 4:
            later_failed.set()
        if item in (3, 4):
            raise LookupError(item)
        return item

    results = in_order(range(100), make, item_bytes=1, max_threads=4)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError, match="3"):
        next(results)
