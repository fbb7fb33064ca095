import base64
import uuid
from contextlib import suppress
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.storage.audit_log import Cursor, decode_cursor


@given(st.datetimes(timezones=st.just(UTC)), st.uuids())
def test_a_cursor_comes_back_and_needs_no_escaping(created_at, calibration_id):
    text = Cursor(created_at, calibration_id).encode()
    assert decode_cursor(text) == Cursor(created_at, calibration_id)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.text())
def test_any_other_text_is_refused_or_is_a_cursor(text):
    decoded = None
    with suppress(InvalidInput):
        decoded = decode_cursor(text)
    assert decoded is None or decode_cursor(decoded.encode()) == decoded


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00"])
def test_a_cursor_whose_time_is_not_in_utc_is_refused(time):
    text = base64.urlsafe_b64encode(f"{time} {uuid.uuid4()}".encode()).decode().rstrip("=")
    with pytest.raises(InvalidInput):
        decode_cursor(text)
