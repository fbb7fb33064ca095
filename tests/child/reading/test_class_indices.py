"""Names of classes become indices: as the caller says, else as the note tells."""

from itertools import product

import pytest

from service.child.reading.class_indices import class_indices, order_note
from service.errors import InvalidDataset
from service.runner.messages.reading import Reading

PLAIN = Reading()
OTHERS = Reading(classes=["emu", "dog"])
TWICE = Reading(classes=["crane", "cat", "crane"])
ONE_OF_MANY = ["cat", *(f"dog {k}" for k in range(7))]
PADDED = [f"{k:03d}" for k in range(120)]
# The names, what the caller says of them, what names them, and their indices.
MAPS = [
    (["fox", "cat", "é-"], PLAIN, "folders", {"cat": 0, "fox": 1, "é-": 2}),
    (["fox"], Reading(class_map={"fox": 7, "cat": 2}, classes=["fox"]), "", {"fox": 7, "cat": 2}),
    (["fox"], Reading(classes=["fox", "cat"]), "", {"fox": 0, "cat": 1}),
    # A class beside a duplicate has its index.
    (["cat"], TWICE, "", {"crane": 2, "cat": 1}),
    # Classes without a name in use are left to the model.
    (["fox", "cat"], OTHERS, "", {"cat": 0, "fox": 1}),
    *(([*map(str, range(n))], PLAIN, "folders", {str(k): k for k in range(n)}) for n in (1, 2, 10)),
    (PADDED, PLAIN, "folders", {name: int(name) for name in PADDED}),
    # A few hundred samples seldom hold all of a thousand classes.
    (["7", "0", "993"], PLAIN, "labels", {"0": 0, "7": 7, "993": 993}),
]


@pytest.mark.parametrize(("names", "reading", "named_by", "indices"), MAPS)
def test_names_become_indices(names, reading, named_by, indices):
    read = class_indices(names[::-1], reading, place="x", named_by=named_by)
    assert read.map == indices
    told = names[0].isdigit() or reading not in (PLAIN, OTHERS)
    assert read.by_order is not told


UNLISTED = [
    (ONE_OF_MANY, Reading(class_map={"cat": 0}), "'cat', got 'dog 0'"),
    (ONE_OF_MANY, Reading(class_map={"cat": 0}), "'dog 4' and 2 more"),
    (["foxx", "cat"], Reading(classes=["fox", "cat"]), "'fox'?"),
    (["cat", "crane"], TWICE, "'crane'"),
]


@pytest.mark.parametrize(("names", "reading", "named"), UNLISTED)
def test_a_name_that_the_caller_does_not_list_once_is_named(names, reading, named):
    with pytest.raises(InvalidDataset) as refused:
        class_indices(names, reading, place="calibration")
    (violation,) = refused.value.violations
    assert violation.location == "calibration"
    assert named in violation.message


NO_INDICES = [
    *(["-1", "0"], ["0.0", "1.0"], ["+1", "2"], ["0", "00"], ["9" * 5000, "0"], ["1.", "2"]),
    [str(k) for k in range(1, 11)],
]
GAPS = [["0", "2"], ["0", "1", "300"], ["5", "6"]]
BY_PLACE = [*product(["labels"], NO_INDICES), *product(["folders"], NO_INDICES + GAPS)]


@pytest.mark.parametrize(("named_by", "names"), BY_PLACE, ids=range(len(BY_PLACE)))
def test_numbers_that_are_not_indices_are_refused(named_by, names):
    """Sorted as text, "10.0" would come before "2.0"; folders have no gap."""
    with pytest.raises(InvalidDataset, match="class_map") as refused:
        class_indices(names, PLAIN, place="x", named_by=named_by)
    assert len(refused.value.message) < 500
    assert ("1 to 10" in refused.value.message) == (len(names) == 10)


def test_a_note_of_the_order_is_printable():
    indices = class_indices(["a\x1b[31m", "b\n", "cat"], PLAIN, place="x")
    assert order_note(indices.map).isprintable()
    assert "cat=2" in order_note(indices.map)
