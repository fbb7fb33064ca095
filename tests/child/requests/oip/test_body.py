"""Bodies as they come over the wire."""

import gzip
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.child.requests.open_inference import divide, inflate
from service.errors import MalformedRequest, TooLarge

COMPRESS = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}


@given(st.binary(max_size=2000), st.sampled_from(sorted(COMPRESS)))
def test_a_body_is_inflated(body, encoding):
    assert inflate(COMPRESS[encoding](body), encoding, max_bytes=2000) == body


def test_large_bodies_inflate_in_pieces() -> None:
    rng = random.Random(0)
    body = rng.randbytes(700_000) + bytes(2_000_000)
    for encoding in ("gzip", "deflate"):
        assert bytes(inflate(COMPRESS[encoding](body), encoding, max_bytes=len(body))) == body
        with pytest.raises(TooLarge):
            inflate(COMPRESS[encoding](body), encoding, max_bytes=len(body) - 1)


@given(st.integers(1, 5000), st.integers(0, 4999), st.sampled_from(["gzip", "deflate"]))
def test_a_body_is_inflated_up_to_the_limit(size, limit, encoding):
    packed = COMPRESS[encoding](b"a" * size)
    if size <= limit:
        assert len(inflate(packed, encoding, max_bytes=limit)) == size
    else:
        with pytest.raises(TooLarge):
            inflate(packed, encoding, max_bytes=limit)


@given(st.binary(min_size=1, max_size=200), st.sampled_from(["gzip", "deflate"]), st.data())
def test_truncated_bodies_are_refused(body, encoding, data):
    packed = COMPRESS[encoding](body)
    cut = data.draw(st.integers(0, len(packed) - 1))

    with pytest.raises(MalformedRequest):
        inflate(packed[:cut], encoding, max_bytes=1000)


@given(st.binary(max_size=50), st.text(max_size=5))
def test_a_body_is_divided_without_loss_or_refused(body, length):
    try:
        text, raw = divide(body, length)
    except MalformedRequest:
        assert not (length.isascii() and length.isdigit() and int(length) <= len(body))
    else:
        assert bytes(text) + bytes(raw) == body
        assert len(text) == int(length)
