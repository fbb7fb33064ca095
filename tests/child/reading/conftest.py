"""Where the tests of this folder write a set."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "set.npz"
