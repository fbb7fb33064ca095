"""Tables of outputs whose columns have the names of classes, and columns of one probability."""

import numpy as np
import pytest
from dataset_files import TABLE_FORMATS, info_of, read_all, refusal, write_columns, write_text

from service.runner.messages.reading import Reading

N = 30
RNG = np.random.default_rng(3)
NAMES = ["sales", "billing", "other"]
OUTPUTS = RNG.dirichlet(np.ones(3), N)
INDICES = np.arange(N) % 3
BY_NAME = np.array(NAMES)[INDICES]
CLASSES = {"sales": 0, "billing": 1, "other": 2}


def columns(prefix="prob_", names=NAMES, **labels):
    outputs = np.log(OUTPUTS) if prefix == "logit_" else OUTPUTS
    return labels | {f"{prefix}{name}": outputs[:, at] for at, name in enumerate(names)}


@pytest.mark.parametrize("labels", [INDICES, BY_NAME], ids=["indices", "names"])
@pytest.mark.parametrize("prefix", ["prob_", "p_", "logit_"])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_classes_have_the_names_of_their_columns(path, file_format, prefix, labels):
    path = write_columns(path, file_format, columns(prefix, label=labels))
    found, read = read_all(path)
    kind = "logits" if prefix == "logit_" else "probabilities"
    expected = np.log(OUTPUTS) if kind == "logits" else OUTPUTS
    np.testing.assert_array_equal(found[kind], expected)
    np.testing.assert_array_equal(read, INDICES)
    info = info_of(path)
    assert (info.kind, info.n_classes, info.class_map) == (kind, 3, CLASSES)
    (note,) = info.notes
    assert "`sales`, `billing`, `other`" in note


@pytest.mark.parametrize("reading", [Reading(classes=NAMES), Reading(class_map=CLASSES)])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_known_classes_are_found_in_any_order(path, file_format, reading):
    table = columns(label=BY_NAME)
    path = write_columns(path, file_format, dict(reversed(table.items())))
    found, labels = read_all(path, reading=reading)
    np.testing.assert_array_equal(found["probabilities"], OUTPUTS)
    np.testing.assert_array_equal(labels, INDICES)
    unlabelled = write_columns(path, file_format, columns(names=NAMES))
    found, _ = read_all(unlabelled, reading=reading, labels_required=False)
    np.testing.assert_array_equal(found["probabilities"], OUTPUTS)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_integers_that_name_classes_are_labels_by_name(path, file_format):
    path = write_columns(path, file_format, columns("p_", ["3", "1", "2"], label=INDICES + 1))
    found, labels = read_all(path)
    np.testing.assert_array_equal(found["probabilities"], OUTPUTS[:, [1, 2, 0]])
    np.testing.assert_array_equal(labels, INDICES)
    path = write_columns(path, file_format, columns("p_", ["2", "0", "1"], label=INDICES))
    found, labels = read_all(path)
    np.testing.assert_array_equal(found["probabilities"], OUTPUTS[:, [1, 2, 0]])
    np.testing.assert_array_equal(labels, INDICES)


@pytest.mark.parametrize("name", ["p", "prob", "probability"])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_one_column_is_the_probability_of_class_1(path, file_format, name):
    chance = RNG.random(N)
    path = write_columns(path, file_format, {name: chance, "label": INDICES % 2})
    found, labels = read_all(path)
    np.testing.assert_array_equal(found["probabilities"], np.stack([1 - chance, chance], axis=1))
    np.testing.assert_array_equal(labels, INDICES % 2)
    assert info_of(path).n_classes == 2
    said = np.array(["fine", "fraud"])[INDICES % 2]
    path = write_columns(path, file_format, {name: chance, "label": said})
    _, labels = read_all(path, reading=Reading(classes=["fine", "fraud"]))
    np.testing.assert_array_equal(labels, INDICES % 2)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_the_label_column_may_be_called_otherwise(path, file_format):
    path = write_columns(path, file_format, columns(intent=BY_NAME))
    _, labels = read_all(path, reading=Reading(columns={"label": ["intent"]}))
    np.testing.assert_array_equal(labels, INDICES)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_features_of_a_model_may_have_such_names(path, file_format):
    table = {"p_value": RNG.random(N), "p": RNG.random(N), "label": INDICES}
    found, _ = read_all(write_columns(path, file_format, table), reading=Reading(kind="inputs"))
    assert found["inputs"].shape == (N, 2)


WRONG = {
    "unknown label": ("label,p_a,p_b\na,1,0\nbb,1,0\n", {}, ".label[1]", "`a`, `b`, got `bb`"),
    "near label": ("label,p_cat,p_dog\ncta,1,0\n", {}, ".label[0]", "did you mean `cat`?"),
    "index beyond": ("label,p_a,p_b\n2,1,0\n", {}, ".label[0]", "from 0 to 1, got 2"),
    "another column": ("label,c,p_a,p_b\na,1.0,1,0\n", {}, "", "got also `c`"),
    "both kinds": ("label,p_a,logit_b\na,1,0\n", {}, "", "columns of both"),
    "one class": ("label,p_a\na,1\n", {}, ".p_a", "call the column `prob`"),
    "twice": ("label,p_a,p_a\na,1,0\n", {}, ".p_a", "twice"),
    "no sum": ("label,p_a,p_b\na,1,1\n", {}, ".p_*[0]", "sum to 1"),
    "rounded": (
        "label,p_a,p_b,p_c\na,.34,.34,.33\n",
        {},
        ".p_*[0]",
        "rounded to 2 decimals: send more, or divide each row by its sum",
    ),
    "missing class": (
        "label,p_a,p_bb\na,1,0\n",
        {"classes": ["a", "b", "c"]},
        "",
        "missing: `p_b`, `p_c`; got also `p_bb`; did you mean `p_b`?",
    ),
    "class map of some": (
        "label,p_a,p_b\na,1,0\n",
        {"class_map": {"a": 1, "b": 2}},
        "",
        "the indices from 0 to 1",
    ),
    "only class 1": ("label,prob_1\n1,0.5\n", {}, ".prob_0", "call the column `prob`"),
    "two of one": ("label,p,prob\n1,0.5,0.5\n", {}, "", "one column of the probability"),
    "percentage": ("label,p\n1,50\n", {}, ".p[0]", "got 50.0; divide percentages by 100"),
    "not a number": ("label,p\n1,0.5\n1,nan\n", {}, ".p[1]", "empty cell or NaN"),
    "third class": ("label,p\n2,0.5\n", {}, ".label[0]", "from 0 to 1, got 2"),
    "counted from one": (
        "label,p\n1,0.5\n2,0.5\n",
        {},
        ".label[1]",
        "from 0 to 1, got 2; labels run from 1 to 2: subtract 1",
    ),
    "text beside one": (
        "label,p\nyes,0.5\n",
        {},
        ".label[0]",
        "an integer, got 'yes'; if labels are names of classes, list these",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_broken_rule_is_named_with_its_place(path, case):
    text, reading, location, message = WRONG[case]
    error = refusal(write_text(path, text), reading=Reading(**reading))
    assert error.violations[0].location == f"calibration{location}"
    assert message in error.violations[0].message


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_listed_classes_are_labels_beside_one_column(path, file_format):
    given = {"label": np.array(["no", "yes", "yes"]), "prob": np.array([0.1, 0.8, 0.9])}
    path = write_columns(path, file_format, given)
    assert "config.classes" in refusal(path).violations[0].message
    _, found = read_all(path, reading=Reading(classes=["no", "yes"]))
    assert found.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0.0", "2.0", "1."], [0, 2, 1]),
        (["0", "2.0", "1"], [0, 2, 1]),
        (["1e0", "0", "2"], [1, 0, 2]),
    ],
)
@pytest.mark.parametrize("header", ["label,logit_0,logit_1,logit_2", "label,a,b,c"])
def test_whole_numbers_are_labels_in_csv(path, header, labels, expected):
    lines = [header, *(f"{label},1,2,3" for label in labels)]
    _, found = read_all(write_text(path, "\n".join(lines)))
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("8.5", "an integer, got '8.5'"),
        ("nan", "a number, got an empty cell or NaN; leave out samples without a label"),
        ("inf", "an integer, got 'inf'"),
        ("9007199254740994.0", "an integer, got"),
        ("-1.0", "got -1"),
        ("3.0", "from 0 to 2, got 3"),
        ("cat", "an integer, got 'cat'"),
        ("", "empty cell"),
    ],
)
def test_other_labels_stay_refused_in_csv(path, label, message):
    text = f"label,logit_0,logit_1,logit_2\n1.0,1,2,3\n{label},1,2,3\n"
    (violation,) = refusal(write_text(path, text)).violations
    assert violation.location == "calibration.label[1]"
    assert message in violation.message


def test_three_decimals_may_miss_one_by_a_thousandth(path):
    """1 - 0.999 is more than 0.001 as a float."""
    text = "label,p_a,p_b,p_c\na,.333,.333,.333\nb,.334,.333,.334\n"
    found, _ = read_all(write_text(path, text))
    assert found["probabilities"].shape == (2, 3)
