"""CSV: its dialects, and what is refused with the cell at fault."""

import numpy as np
import pytest
from dataset_files import check_read, check_refused, read_all, refusal, write_text

from service.errors import TooLarge
from service.runner.messages.reading import Reading

H = "label,logit_0,logit_1,logit_2\n"
ROWS = "0,0.5,-1,2\n2,1e-3,4,5\n1,6,7,8\n"


# A byte order mark, CRLF, no last newline, blank lines, spaces, quotes.
DIALECTS = ["\ufeff" + H + ROWS, (H + ROWS).replace("\n", "\r\n"), (H + ROWS).rstrip("\n")]
DIALECTS += [H + ROWS.replace("\n", "\n\n"), H + ROWS.replace(",", ", ")]
DIALECTS += [H.replace("label", '"label"') + ROWS.replace("0.5", '"0.5"')]


@pytest.mark.parametrize("text", DIALECTS)
def test_dialects_of_csv(path, text):
    logits = np.array([[0.5, -1, 2], [1e-3, 4, 5], [6, 7, 8]])
    check_read(write_text(path, text), {"logits": logits}, [0, 2, 1])


# The text, where it is refused, and what the message names: the cell, the figure, or the fix.
CASES = {
    # Outputs.
    "header alone": (H, "", "sample"),
    "no outputs": ("label\n1\n", "", "`logit_1`, …, or `prob_0`, `prob_1`, …, got `label`"),
    "gap": ("label,logit_0,logit_2\n0,1,2\n", ".logit_1", "class 1"),
    "column twice": ("label,logit_0,logit_1,logit_1\n0,1,2,3\n", ".logit_1", "twice"),
    "other column": ("label,x,logit_0,logit_1\n0,.5,1,2\n", "", "`x`"),
    "semicolons": (H.replace(",", ";") + "0;1;2;3\n", "", "commas"),
    "text after blank lines": (H + "0,1,2,3\n\n\n0,1,x,3\n", ".logit_1[1]", "'x'"),
    "empty cell": (H + ROWS + "0,1,,3\n", ".logit_1[3]", "empty cell"),
    "nan": (H + ROWS + "0,1,nan,3\n", ".logit_1[3]", "NaN"),
    "overflow": (H + ROWS + "0,1,1e999,3\n", ".logit_1[3]", "got inf"),
    "too few values": (H + ROWS + "0,1,2\n", "[3]", "4 values, got 3"),
    "open quote in the header": ('label,"logit_0,logit_1\n0,1,2\n', "", "header line"),
    "prob sum": ("label,prob_0,prob_1\n0,0.5,0.5\n0,0.5,0.6\n", ".prob_*[1]", "got 1.1"),
    # Labels of outputs.
    "half": (H + "1.0,1,2,3\n8.5,1,2,3\n", ".label[1]", "'8.5'"),
    "NaN": (H + "1.0,1,2,3\nnan,1,2,3\n", ".label[1]", "NaN"),
    "beyond exact floats": (H + "1.0,1,2,3\n9007199254740994.0,1,2,3\n", ".label[1]", "integer"),
    "negative": (H + "1.0,1,2,3\n-1.0,1,2,3\n", ".label[1]", "got -1"),
    "fourth class": (H + "1.0,1,2,3\n3.0,1,2,3\n", ".label[1]", "from 0 to 2, got 3"),
    "empty": (H + ROWS + ",1,2,3\n", ".label[3]", "empty cell"),
    # Columns that name classes.
    "unknown label": ("label,p_a,p_b\na,1,0\nbb,1,0\n", ".label[1]", "`a`, `b`, got `bb`"),
    "another column": ("label,c,p_a,p_b\na,1.0,1,0\n", "", "`c`"),
    "both kinds": ("label,p_a,logit_b\na,1,0\n", "", "both"),
    "one class": ("label,p_a\na,1\n", ".p_a", "`prob`"),
    "no sum": ("label,p_a,p_b\na,1,1\n", ".p_*[0]", "sum to 1"),
    "rounded": ("label,p_a,p_b,p_c\na,.34,.34,.33\n", ".p_*[0]", "2 decimals"),
    # One column of the probability of class 1.
    "only class 1": ("label,prob_1\n1,0.5\n", ".prob_0", "`prob`"),
    "two of one": ("label,p,prob\n1,0.5,0.5\n", "", "one column"),
    "percentage": ("label,p\n1,50\n", ".p[0]", "got 50.0; divide percentages by 100"),
    "counted from one": ("label,p\n1,0.5\n2,0.5\n", ".label[1]", "from 1 to 2: subtract 1"),
    "text beside one": ("label,p\nyes,0.5\n", ".label[0]", "'yes'; if labels are names of classes"),
    # Inputs.
    "text alone": ("text,label\ngood,1\n", ".text", "tokenise"),
    "text further down": ("age,label\n" + "1,0\n" * 200_000 + "old,1\n", ".age[200000]", "'old'"),
    "index of pandas": (",age,label\n0,1,0\n", "", "(index=False)"),
    "decimal commas": ('a,label\n"0,123",0\n', ".a", 'decimal=","'),
    "thousands": ('a,label\n"12,345.6",0\n', ".a", 'thousands=","'),
    "commas at the end": ("a,label,\n1,0,\n", "", "end with a comma"),
    "JSON lines": ('{"a": 1, "label": 0}\n', "", "lines=True"),
    "JSON": ('[{"a": 1}]\n', "", "got JSON"),
    "long name": (f"age,label\n1,{'c' * 201}\n", ".label[0]", "got 201"),
    # Supplied uncertainties.
    "no uncertainty": ("label,prob,uncertainty_a\n0,1,1\n1,1,\n", ".uncertainty_a[1]", "empty"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(path, case):
    text, location, named = CASES[case]
    check_refused(write_text(path, text), location, named)


# Headers of two classes, and the names that the classes have.
NAMED = [("proba_0,proba_1", None), ("proba_a,proba_b", ("a", "b"))]
NAMED += [(".pred_a,.pred_b", ("a", "b"))]
NAMED += [(f"{word}_1,{word}_2", ("1", "2")) for word in ("p", "prob", "proba")]


@pytest.mark.parametrize(("header", "names"), NAMED)
def test_columns_of_classes_have_the_words_of_other_tools(path, header, names):
    first, second = names or ("0", "1")
    text = f"label,{header}\n{second},.25,.75\n{first},.5,.5\n"
    info = check_read(
        write_text(path, text), {"probabilities": np.array([[0.25, 0.75], [0.5, 0.5]])}, [1, 0]
    )
    assert tuple(info.class_map or ()) == (names or ())


OTHER_CLASSES = [
    (Reading(classes=["a", "b", "c"]), "missing: `p_b`, `p_c`; got also `p_bb`"),
    (Reading(class_map={"a": 1, "b": 2}), "from 0 to 1"),
]


@pytest.mark.parametrize(("reading", "named"), OTHER_CLASSES)
def test_columns_agree_with_the_known_classes(path, reading, named):
    text = "label,p_a,p_bb\na,1,0\n" if reading.classes else "label,p_a,p_b\na,1,0\n"
    check_refused(write_text(path, text), "", named, reading=reading)


@pytest.mark.parametrize("header", ["label,logit_0,logit_1,logit_2", "label,a,b,c"])
@pytest.mark.parametrize("labels", [("0.0", "2.0", "1."), ("0", "2.0", "1"), ("0e0", "2", "1")])
def test_whole_numbers_are_labels(path, header, labels):
    lines = [header, *(f"{label},1,2,3" for label in labels)]
    assert read_all(write_text(path, "\n".join(lines)))[1].tolist() == [0, 2, 1]


def test_three_decimals_may_miss_one_by_a_thousandth(path):
    """1 - 0.999 is more than 0.001 as a float."""
    text = "label,p_a,p_b,p_c\na,.333,.333,.333\nb,.334,.333,.334\n"
    assert read_all(write_text(path, text))[0]["probabilities"].shape == (2, 3)


def test_a_csv_of_a_million_columns_is_refused_by_its_header(path):
    names = ",".join(f"logit_{k}" for k in range(1_000_000))
    for header, named in ((f"label,{names}", "header line"), ("label" + "," * 10**6, "1000001")):
        error = refusal(write_text(path, header + "\n"))
        assert type(error) is TooLarge
        assert named in error.message
