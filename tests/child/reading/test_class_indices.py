"""Names of classes become indices: as the caller says, else as the note tells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.child.reading.class_indices import class_indices, order_note
from service.errors import InvalidDataset
from service.runner.messages.reading import Reading

PLAIN = Reading()
WORDS = st.sets(st.text("abc é_-", min_size=1, max_size=6), min_size=1, max_size=12)


@given(WORDS)
def test_names_are_numbered_in_their_order(names):
    indices = class_indices(names, PLAIN, place="calibration", named_by="folders")
    assert [indices.map[name] for name in sorted(names)] == list(range(len(names)))
    assert indices.by_order


@given(WORDS, st.data())
def test_the_callers_class_map_and_classes_are_used_whole(names, data):
    known = sorted(names | {"another"})
    class_map = {name: data.draw(st.integers(0, 99)) for name in known}
    classes = data.draw(st.permutations(known))
    of_map = class_indices(names, Reading(class_map=class_map, classes=known), place="x")
    assert (of_map.map, of_map.note) == (class_map, None)
    of_classes = class_indices(names, Reading(classes=classes), place="x")
    assert of_classes.map == {name: classes.index(name) for name in classes}
    assert of_classes.note is None


TWICE = Reading(classes=["crane", "cat", "crane"])
ONE_OF_MANY = ["cat", *(f"dog {k}" for k in range(7))]


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


def test_a_class_beside_a_duplicate_has_its_index():
    assert class_indices(["cat"], TWICE, place="x").map["cat"] == 1


def test_classes_without_a_name_in_use_are_left_to_the_model_with_a_note():
    indices = class_indices(["fox", "cat"], Reading(classes=["emu", "dog"]), place="x")
    assert indices.by_order
    assert indices.map == {"cat": 0, "fox": 1}
    assert "cat=0, fox=1" in order_note(indices.map)


@pytest.mark.parametrize("form", ["{}", "{:03d}"])
def test_folders_of_integers_without_a_gap_are_numbers(form):
    for n_classes in (1, 2, 10, 120):
        names = [form.format(k) for k in range(n_classes)]
        indices = class_indices(reversed(names), PLAIN, place="x", named_by="folders")
        assert indices.map == {name: int(name) for name in names}


def test_labels_may_skip_classes():
    """A few hundred samples seldom hold all of a thousand classes."""
    indices = class_indices(["7", "0", "993"], PLAIN, place="x", named_by="labels")
    assert indices.map == {"0": 0, "7": 7, "993": 993}


NO_INDICES = [
    *(["-1", "0"], ["0.0", "1.0"], ["+1", "2"], ["0", "00"], ["9" * 5000, "0"], ["1.", "2"]),
    [str(k) for k in range(1, 11)],
]


@pytest.mark.parametrize("named_by", ["folders", "labels"])
@pytest.mark.parametrize("names", NO_INDICES)
def test_numbers_that_are_not_indices_are_refused(names, named_by):
    """Sorted as text, "10.0" would come before "2.0"."""
    with pytest.raises(InvalidDataset, match="class_map") as refused:
        class_indices(names, PLAIN, place="x", named_by=named_by)
    assert len(refused.value.message) < 500
    assert ("1 to 10" in refused.value.message) == (len(names) == 10)


@pytest.mark.parametrize("numbers", [(0, 2), (0, 1, 300), (5, 6)])
def test_folders_of_integers_with_a_gap_are_refused(numbers):
    with pytest.raises(InvalidDataset, match="class_map"):
        class_indices(map(str, numbers), PLAIN, place="x", named_by="folders")


def test_a_note_is_printable():
    indices = class_indices(["a\x1b[31m", "b\n"], PLAIN, place="x")
    assert order_note(indices.map).isprintable()
