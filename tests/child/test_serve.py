"""What a child process refuses whoever asks."""

import pytest

from service.child.serve import FIRST_KINDS, USED, Requests
from service.errors import InferenceFailed
from service.runner.messages.frames import Frame, Kind


@pytest.mark.parametrize("kind", FIRST_KINDS)
def test_a_child_that_was_used_takes_no_other_upload(kind):
    requests = Requests()
    with pytest.raises(KeyError):  # it names no sets
        requests.answer(Frame(Kind.READ, 0, {}, {}, budget_ms=60_000))
    with pytest.raises(InferenceFailed, match=USED):
        requests.answer(Frame(kind, 1, {}, {}, budget_ms=60_000))
