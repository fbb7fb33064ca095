"""Pictures of every kind that is met become the pixels that are seen; what is none is refused."""

import struct
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from picture_files import encoded, jpeg, png, scene
from PIL import Image, ImageOps

from service.child.pictures.decode import read_picture
from service.errors import InvalidInput, TooLarge
from service.runner.messages.preprocessing import PRESETS, Preprocessing

AS_IT_IS = PRESETS["none"]
GREY = Preprocessing(colour="grey", mean=(0.0,), std=(1.0,))


def read(content: bytes, preprocessing: Preprocessing = AS_IT_IS) -> Any:
    return read_picture(content, preprocessing, place="pictures[3]")


def refused(content: bytes, preprocessing: Preprocessing = AS_IT_IS) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(content, preprocessing)
    return caught.value.message


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation_is_applied(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(scene(40, 20), kind, exif=exif)
    expected = ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB")
    assert (expected.size == (20, 40)) == (5 <= orientation <= 8)
    np.testing.assert_array_equal(read(content), np.asarray(expected))


@pytest.mark.parametrize(
    "exif",
    [
        b"",
        b"Exif\x00\x00",
        b"Exif\x00\x00II*\x00\xff\xff\xff\xff",
        b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\xff\xff\x01\x12\x00\x03",
        b"Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x1a\x01\x05\x00\x01\x00\x00\x00\xff\xff\x00\x00",
    ],
)
def test_damaged_exif_leaves_a_picture_as_it_is(exif):
    content = jpeg(30, 20)
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    np.testing.assert_array_equal(read(content[:2] + segment + content[2:]), read(content))


def test_cmyk_is_seen_in_colours_and_not_inverted():
    colours = np.zeros((16, 32, 3), dtype=np.uint8)
    colours[:, :16] = (250, 30, 20)
    colours[:, 16:] = (10, 40, 240)
    content = encoded(Image.fromarray(colours).convert("CMYK"), "JPEG", quality=95)
    assert b"Adobe" in content
    seen = read(content).astype(int)
    assert np.abs(seen[8, 4] - (250, 30, 20)).max() < 12
    assert np.abs(seen[8, 28] - (10, 40, 240)).max() < 12


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_modes_are_brought_to_colours_and_to_grey(mode):
    image = Image.fromarray(scene(24, 18)).convert(mode)
    content = encoded(image, "PNG")
    np.testing.assert_array_equal(read(content), np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(read(content, GREY)[..., 0], np.asarray(image.convert("L")))


def test_transparency_is_ignored():
    picture = scene(12, 12)
    alpha = np.zeros((12, 12, 1), dtype=np.uint8)
    content = encoded(np.concatenate([picture, alpha], axis=2), "PNG")
    np.testing.assert_array_equal(read(content), picture)


@pytest.mark.parametrize("transparency", [0, bytes(range(256))])
def test_a_palette_with_transparent_colours_is_read_without_a_warning(transparency):
    image = Image.fromarray(scene(24, 18)).convert("P", palette=Image.Palette.ADAPTIVE)
    content = encoded(image, "PNG", transparency=transparency)
    np.testing.assert_array_equal(read(content), np.asarray(image.convert("RGB")))


def test_sixteen_bits_are_scaled_not_clipped():
    deep = np.linspace(0, 65535, 24 * 10).reshape(10, 24)
    expected = deep * (255 / 65535)
    content = encoded(Image.fromarray(deep.astype(np.uint16)), "PNG")
    for preprocessing in (AS_IT_IS, GREY):
        seen = read(content, preprocessing)
        assert np.abs(seen - expected[..., None]).max() <= 1
        assert (seen.min(), seen.max()) == (0, 255)
    lines = b"".join(b"\x00" + np.repeat(row, 3).astype(">u2").tobytes() for row in deep)
    np.testing.assert_array_equal(read(png(24, 10, 16, lines)), read(content))


def test_a_colour_profile_changes_nothing():
    content = encoded(scene(16, 16), "PNG", icc_profile=b"no profile at all")
    np.testing.assert_array_equal(read(content), scene(16, 16))


def test_the_first_picture_of_a_jpeg_with_several_is_read():
    first, second = Image.fromarray(scene(20, 20)), Image.fromarray(scene(20, 20, seed=1))
    content = encoded(first, "MPO", save_all=True, append_images=[second])
    np.testing.assert_array_equal(read(content), np.asarray(Image.open(BytesIO(content))))
    # What it says of the others is cut to pieces.
    at = content.index(b"MPF\x00")
    np.testing.assert_array_equal(
        read(content[: at + 4] + b"\xff" * 12 + content[at + 16 :]), read(content)
    )


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_animated_picture_is_refused(kind):
    frames = [Image.fromarray(scene(16, 16, seed=seed)) for seed in range(3)]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    assert "animated; send one still picture" in refused(content)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_truncated_pictures_are_refused(kind, share):
    content = encoded(scene(200, 150), kind)
    message = refused(content[: int(len(content) * share)])
    assert message.startswith("pictures[3]: ")
    assert "cannot be decoded" in message


def test_damaged_pictures_are_read_or_refused():
    rng = np.random.default_rng(3)
    for kind in ("JPEG", "PNG", "WEBP"):
        content = encoded(scene(60, 40), kind)
        for _ in range(150):
            damaged = bytearray(content)
            for position in rng.integers(0, len(content), 4):
                damaged[position] = rng.integers(0, 256)
            with suppress(InvalidInput):  # nothing else may come of it, and no warning
                assert read(bytes(damaged)).dtype == np.uint8


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "got no bytes"),
        (encoded(scene(8, 8), "GIF"), "got GIF"),
        (encoded(scene(8, 8), "BMP"), "got BMP"),
        (encoded(scene(8, 8), "TIFF"), "got TIFF"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "got HEIC"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "got SVG"),
        (b"\x93NUMPY\x01\x00", "got an .npy array"),
        (b"abc", "got 3 bytes of an unknown format"),
    ],
)
def test_other_formats_are_named(content, told):
    message = refused(content)
    assert message == f"pictures[3]: expected a picture, JPEG, PNG or WebP, {told}"


def claims(kind: str, width: int, height: int) -> bytes:
    """Return a small file that claims to be a large picture."""
    if kind == "PNG":
        return png(width, height, 8, bytes(1000))
    if kind == "JPEG":
        content = bytearray(jpeg(8, 8))
        at = content.index(b"\xff\xc0") + 5
        content[at : at + 4] = struct.pack(">HH", height, width)
        return bytes(content)
    content = bytearray(encoded(scene(8, 8), "WEBP", icc_profile=b"none"))
    assert content[12:16] == b"VP8X"
    content[24:30] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(content)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(kind):
    # From just above the limit to where Pillow itself warns, and where it refuses.
    for width, height in ((8001, 8000), (10000, 10000), (16000, 16000)):
        with pytest.raises(TooLarge, match=f"at most 64 megapixels, got {width} x {height}"):
            read(claims(kind, width, height))


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 50}])
def test_the_size_in_the_head_of_a_webp_is_checked_before_decoding(options):
    content = bytearray(encoded(scene(8, 8), "WEBP", **options))
    if options.get("lossless"):
        assert content[12:16] == b"VP8L"
        content[21:25] = (16382 | 16382 << 14).to_bytes(4, "little")
    else:
        assert content[12:16] == b"VP8 "
        content[26:30] = struct.pack("<HH", 16383, 16383)
    with pytest.raises(TooLarge, match="16383 x 16383"):
        read(bytes(content))


def test_a_jpeg_of_thousands_of_scans_is_refused():
    content = bytearray(encoded(scene(64, 64), "JPEG", progressive=True))
    at = content.index(b"\xff\xc2") + 5
    content[at : at + 4] = struct.pack(">HH", 7000, 7000)
    scan = content.rindex(b"\xff\xda")
    with pytest.raises(TooLarge, match="too many scans"):
        read(bytes(content[:-2] + content[scan:-2] * 100))


def test_a_thin_picture_is_refused_before_it_is_blown_up():
    content = encoded(np.zeros((1, 60000), np.uint8), "PNG")
    with pytest.raises(TooLarge, match=r"resized.* 15360000 x 256"):
        read(content, PRESETS["imagenet"])
    assert read(content).shape == (1, 60000, 3)


def test_a_picture_smaller_than_the_crop_is_refused():
    given = Preprocessing(crop=(32, 48))
    assert read(jpeg(48, 32), given).shape == (32, 48, 3)
    for width, height in ((47, 32), (48, 31)):
        assert refused(jpeg(width, height), given) == (
            f"pictures[3]: expected a picture of at least 48 x 32 to crop, got {width} x {height};"
            " send larger pictures, or a larger preprocessing.resize"
        )
