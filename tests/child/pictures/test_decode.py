"""Pictures of every kind that is met become the pixels that are seen; what is none is refused."""

import struct
import zlib
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from picture_files import encoded, jpeg, png, scene
from PIL import Image, ImageOps

from howsure.preprocessing import PRESETS, Preprocessing
from service.child.pictures.decode import read_picture
from service.child.requests.limits import BodyLimits
from service.child.requests.picture_rows import picture_rows
from service.child.requests.predict_request import SentPicture
from service.errors import InvalidInput, TooLarge

KINDS = ("JPEG", "PNG", "WEBP")
AS_IT_IS = PRESETS["none"]
GREY = Preprocessing(colour="grey", mean=(0.0,), std=(1.0,))


def read(content: bytes, preprocessing: Preprocessing = AS_IT_IS) -> Any:
    return read_picture(content, preprocessing, place="pictures[3]")


def refused(content: bytes, preprocessing: Preprocessing = AS_IT_IS) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(content, preprocessing)
    assert caught.value.violations[0].location == "pictures[3]"
    return caught.value.violations[0].message


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_exif_orientation_is_applied(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(scene(40, 20), kind, exif=exif)
    expected = ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB")
    assert (expected.size == (20, 40)) == (5 <= orientation <= 8)
    np.testing.assert_array_equal(read(content), np.asarray(expected))


DAMAGED_EXIF = [
    b"",
    b"II*\x00\xff\xff\xff\xff",
    b"MM\x00*\x00\x00\x00\x08\xff\xff\x01\x12\x00\x03",
    b"II*\x00\x08\x00\x00\x00\x01\x00\x1a\x01\x05\x00\x01\x00\x00\x00\xff\xff\x00\x00",
]


@pytest.mark.parametrize("exif", DAMAGED_EXIF)
def test_damaged_exif_leaves_a_picture_as_it_is(exif):
    content = jpeg(30, 20)
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 8) + b"Exif\x00\x00" + exif
    np.testing.assert_array_equal(read(content[:2] + segment + content[2:]), read(content))


def test_cmyk_is_seen_in_colours_and_not_inverted():
    colours = np.zeros((16, 32, 3), dtype=np.uint8)
    colours[:, :16], colours[:, 16:] = (250, 30, 20), (10, 40, 240)
    content = encoded(Image.fromarray(colours).convert("CMYK"), "JPEG", quality=95)
    assert b"Adobe" in content
    pixels = read(content).astype(int)
    assert np.abs(pixels[8, [4, 28]] - [(250, 30, 20), (10, 40, 240)]).max() < 12


MODES = [
    *((mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA")),
    *(("P", {"transparency": transparency}) for transparency in (0, bytes(range(256)))),
    ("RGB", {"icc_profile": b"no profile at all"}),
]


@pytest.mark.parametrize(("mode", "options"), MODES)
def test_modes_are_brought_to_colours_and_to_grey(mode, options):
    image = Image.fromarray(scene(24, 18)).convert(mode)
    content = encoded(image, "PNG", **options)
    np.testing.assert_array_equal(read(content), np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(read(content, GREY)[..., 0], np.asarray(image.convert("L")))


def test_sixteen_bits_are_scaled_not_clipped():
    deep = np.linspace(0, 65535, 24 * 10).reshape(10, 24)
    content = encoded(Image.fromarray(deep.astype(np.uint16)), "PNG")
    for preprocessing in (AS_IT_IS, GREY):
        pixels = read(content, preprocessing)
        assert np.abs(pixels - (deep * (255 / 65535))[..., None]).max() <= 1
        assert (pixels.min(), pixels.max()) == (0, 255)
    lines = b"".join(b"\x00" + np.repeat(row, 3).astype(">u2").tobytes() for row in deep)
    np.testing.assert_array_equal(read(png(24, 10, 16, zlib.compress(lines))), read(content))


def test_the_first_picture_of_a_jpeg_with_several_is_read():
    first, second = (Image.fromarray(scene(20, 20, seed=seed)) for seed in (0, 1))
    content = encoded(first, "MPO", save_all=True, append_images=[second])
    np.testing.assert_array_equal(read(content), np.asarray(Image.open(BytesIO(content))))
    # What it says of the others is cut to pieces.
    at = content.index(b"MPF\x00") + 4
    damaged = content[:at] + b"\xff" * 12 + content[at + 12 :]
    np.testing.assert_array_equal(read(damaged), read(content))


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_animated_picture_is_refused(kind):
    frames = [Image.fromarray(scene(16, 16, seed=seed)) for seed in range(3)]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    assert "animated" in refused(content)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_that_are_cut_off_are_refused(kind, share):
    content = encoded(scene(200, 150), kind)
    assert "decoded" in refused(content[: int(len(content) * share)])


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_pictures_are_read_or_refused(kind):
    rng = np.random.default_rng(3)
    content = encoded(scene(60, 40), kind)
    for _ in range(150):
        damaged = bytearray(content)
        for position in rng.integers(0, len(content), 4):
            damaged[position] = rng.integers(0, 256)
        with suppress(InvalidInput):  # nothing else may come of it, and no warning
            assert read(bytes(damaged)).dtype == np.uint8


FORMATS = [
    (b"", "no bytes"),
    *((encoded(scene(8, 8), kind), kind) for kind in ("GIF", "BMP", "TIFF")),
    (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "HEIC"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
    (b"\x93NUMPY\x01\x00", "an .npy array"),
    (b"abc", "3 bytes of an unknown format"),
]


@pytest.mark.parametrize(("content", "named"), FORMATS)
def test_other_formats_are_named(content, named):
    assert refused(content).endswith(f"JPEG, PNG or WebP, got {named}")


def sized(kind: str, width: int, height: int, **options: Any) -> bytes:
    """Return a small file that claims to be a large picture."""
    if kind == "PNG":
        return png(width, height, 8, zlib.compress(bytes(1000)))
    content = bytearray(encoded(scene(8, 8), kind, **options))
    if kind == "JPEG":
        at, size = content.index(b"\xff\xc0") + 5, struct.pack(">HH", height, width)
    elif content[12:16] == b"VP8X":
        at, size = 24, struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    elif content[12:16] == b"VP8L":
        at, size = 21, struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        assert content[12:16] == b"VP8 "
        at, size = 26, struct.pack("<HH", width, height)
    content[at : at + len(size)] = size
    return bytes(content)


CLAIMS = [
    *(("JPEG", {}), ("PNG", {}), ("WEBP", {"icc_profile": b"none"})),
    *(("WEBP", {"lossless": True}), ("WEBP", {"quality": 50})),
]


# From just above the limit to where Pillow itself warns, and where it refuses.
@pytest.mark.parametrize(("width", "height"), [(8001, 8000), (10000, 10000), (16000, 16000)])
@pytest.mark.parametrize(("kind", "options"), CLAIMS)
def test_a_picture_of_too_many_pixels_is_refused_undecoded(kind, options, width, height):
    with pytest.raises(TooLarge, match=f"64 megapixels, got {width} x {height}"):
        read(sized(kind, width, height, **options))


def test_a_jpeg_of_thousands_of_scans_is_refused():
    content = bytearray(encoded(scene(64, 64), "JPEG", progressive=True))
    at = content.index(b"\xff\xc2") + 5
    content[at : at + 4] = struct.pack(">HH", 7000, 7000)
    scan = content.rindex(b"\xff\xda")
    with pytest.raises(TooLarge, match="scans"):
        read(bytes(content[:-2] + content[scan:-2] * 100))


def test_a_thin_picture_is_refused_before_it_is_blown_up():
    content = encoded(np.zeros((1, 60000), np.uint8), "PNG")
    with pytest.raises(TooLarge, match="15360000 x 256"):
        read(content, PRESETS["imagenet"])
    assert read(content).shape == (1, 60000, 3)


def test_a_picture_smaller_than_the_crop_is_refused():
    cropped = Preprocessing(crop=(32, 48))
    assert read(jpeg(48, 32), cropped).shape == (32, 48, 3)
    for width, height in ((47, 32), (48, 31)):
        assert f"48 x 32 to crop, got {width} x {height};" in refused(jpeg(width, height), cropped)


def test_pictures_that_take_too_long_are_refused_at_the_next_one():
    sent = [SentPicture(f"pictures[{at}]", encoded(scene(8, 8), "PNG")) for at in range(2)]
    assert len(picture_rows(sent, AS_IT_IS, BodyLimits(2**20, 10))) == 2
    with pytest.raises(TooLarge, match=r"pictures\[1\]: it takes too long"):
        picture_rows(sent, AS_IT_IS, BodyLimits(2**20, 10, until=0.0))
