"""What people read of a calibration: its report as Markdown, as a page, and from the command.

Other tests check decisions, figures and structure. A change of words is a change of these texts.
"""

import pytest
from howsure_command import howsure
from page_text import document, visible_text
from running_service import Service

WIDTH = {"COLUMNS": "100"}
# Those that differ in a few sentences share a file.
OTHERS = ("shifted", "wrong-labels", "mostly-wrong", "earlier-point", "imported", "no-errors")
KINDS = ("pairs", "rare-class", "weighted", "wrong-labels", "shifted")
REPORTS = {
    "digits": ("command", "markdown"),
    "pictures": ("page",),
    **dict.fromkeys([*KINDS, "unlabelled", "operating-point"], ("markdown", "page")),
}


@pytest.fixture
def read(service: Service, shelf, digits_calibration):
    """Return a function that returns a form of a report."""

    def read(name: str, form: str) -> str:
        if name != "digits":
            shelf(name)
        if form == "command":
            done = howsure("report", name, HOWSURE_URL=service.url, **WIDTH)
            assert done.returncode == 0, done.stderr
            return f"{done.stdout}--- stderr\n{done.stderr}"
        headers = {"Accept": "text/html" if form == "page" else "*/*"}
        params = {"calibration": name} | ({} if form == "page" else {"format": form})
        text = service.client.get("/report", params=params, headers=headers).text
        return visible_text(text) if form == "page" else text

    return read


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_in_its_forms(name: str, read, golden) -> None:
    texts = {form: read(name, form) for form in REPORTS[name]}
    golden(f"report-{name}.txt", document(texts))


def test_reports_that_differ_in_a_few_sentences(read, golden) -> None:
    texts = {name: read(name, "command").partition("--- stderr\n")[2] for name in OTHERS}
    texts["model card of digits"] = read("digits", "model-card")
    golden("report-others.txt", document(texts))
