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
    found = class_indices(names, PLAIN, place="calibration", named_by="folders")
    assert [found.map[name] for name in sorted(names)] == list(range(len(names)))
    assert found.by_order


@given(WORDS, st.data())
def test_the_callers_class_map_is_used_whole(names, data):
    known = names | {"another"}
    given_map = {name: data.draw(st.integers(0, 99)) for name in sorted(known)}
    reading = Reading(class_map=given_map, classes=sorted(known))
    assert class_indices(names, reading, place="x").map == given_map
    assert class_indices(names, reading, place="x").note is None


def test_a_name_that_the_map_lacks_is_named():
    reading = Reading(class_map={"cat": 0})
    names = ["cat", *(f"dog {k}" for k in range(7))]
    with pytest.raises(InvalidDataset) as refused:
        class_indices(names, reading, place="calibration")
    (violation,) = refused.value.violations
    assert violation.location == "calibration"
    assert "'dog 0', 'dog 1', 'dog 2', 'dog 3', 'dog 4' and 2 more" in violation.message
    assert "expected the names of classes, 'cat', got 'dog 0'" in violation.message


@given(st.permutations(["cat", "dog", "emu", "fox"]))
def test_names_of_classes_have_their_positions(classes):
    found = class_indices(["fox", "cat"], Reading(classes=classes), place="x")
    assert found.map == {name: classes.index(name) for name in classes}
    assert found.note is None


def test_a_name_that_the_classes_lack_is_named():
    with pytest.raises(InvalidDataset, match="did you mean 'fox'"):
        class_indices(["foxx", "cat"], Reading(classes=["fox", "cat"]), place="x")


def test_classes_without_a_name_in_use_are_left_to_the_model_with_a_note():
    found = class_indices(["fox", "cat"], Reading(classes=["emu", "dog"]), place="x")
    assert found.by_order
    assert found.map == {"cat": 0, "fox": 1}
    assert "cat=0, fox=1" in order_note(found.map)


def test_a_duplicate_class_name_has_no_index():
    reading = Reading(classes=["crane", "cat", "crane"])
    assert class_indices(["cat"], reading, place="x").map["cat"] == 1
    with pytest.raises(InvalidDataset, match="'crane'"):
        class_indices(["cat", "crane"], reading, place="x")


@given(st.integers(1, 120), st.sampled_from(["{}", "{:03d}"]))
def test_folders_of_integers_without_a_gap_are_numbers(n_classes, form):
    names = [form.format(k) for k in range(n_classes)]
    found = class_indices(reversed(names), PLAIN, place="x", named_by="folders")
    assert found.map == {name: int(name) for name in names}


@given(st.sets(st.integers(0, 300), min_size=2, max_size=20))
def test_folders_of_other_integers_are_refused(numbers):
    gapless = numbers == set(range(len(numbers)))
    names = [str(number) for number in numbers]
    if gapless:
        assert set(class_indices(names, PLAIN, place="x", named_by="folders").map) == set(names)
        return
    with pytest.raises(InvalidDataset, match="class_map"):
        class_indices(names, PLAIN, place="x", named_by="folders")


def test_labels_may_skip_classes():
    """A few hundred samples seldom hold all of a thousand classes."""
    found = class_indices(["7", "0", "993"], PLAIN, place="x", named_by="labels")
    assert found.map == {"0": 0, "7": 7, "993": 993}


@pytest.mark.parametrize("named_by", ["folders", "labels"])
def test_counting_from_one_is_recognised(named_by):
    names = [str(k) for k in range(1, 11)]
    with pytest.raises(InvalidDataset, match="got 1 to 10, as if counted from 1"):
        class_indices(names, PLAIN, place="x", named_by=named_by)


@pytest.mark.parametrize("named_by", ["folders", "labels"])
@pytest.mark.parametrize(
    "names",
    [["-1", "0"], ["0.0", "1.0"], ["+1", "2"], ["0", "00"], ["9" * 5000, "0"], ["1.", "2"]],
)
def test_numbers_that_are_not_indices_are_refused(names, named_by):
    """Sorted as text, "10.0" would come before "2.0"."""
    with pytest.raises(InvalidDataset, match="class_map") as refused:
        class_indices(names, PLAIN, place="x", named_by=named_by)
    assert len(refused.value.message) < 500


def test_a_note_is_printable():
    found = class_indices(["a\x1b[31m", "b\n"], PLAIN, place="x")
    assert order_note(found.map).isprintable()
