import pytest

from howsure.statistics.measures.passes import prefixes


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (4, (1, 2, 3, 4)),
        (20, (1, 2, 3, 5, 10, 20)),
        (21, (1, 2, 3, 5, 10, 20, 21)),
        (1000, (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)),
    ],
)
def test_usual_numbers_and_then_all(passes, expected):
    assert prefixes(passes) == expected
