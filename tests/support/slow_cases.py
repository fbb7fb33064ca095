"""Tables of cases of which `make test` runs a few, and `make test-slow` the rest."""

from collections.abc import Mapping
from typing import Any

import pytest


def quick(cases: Mapping[str, Any], *names: str) -> list[Any]:
    """Return parameters of a test: the cases by name, all but the named ones marked as slow."""
    missing = set(names) - set(cases)
    assert not missing, missing
    return [
        pytest.param(case, id=name, marks=[] if name in names else [pytest.mark.slow])
        for name, case in cases.items()
    ]
