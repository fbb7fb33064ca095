"""The notebooks run to their last cell on a service of their own."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from running_service import service_on

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
# What each is to have said at its end.
SAID = {
    "digits": r"calibrated +0\.\d+.*raw softmax",
    "outputs": r"by Ada Byron: at most 5 %.*wrong among the others: [0-4]\.\d%",
    "tabular": r"outcomes now means outcomes@2.*outcomes now means outcomes@1",
    "pictures": r"sharp: .*% out of distribution.*blurred: .*% out of distribution",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with service_on(tmp_path_factory.mktemp("service"), on_port=True) as client:
        yield str(client.base_url)


def test_each_notebook_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_notebooks_are_stored_without_outputs(name) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs(name, url, tmp_path) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    runner = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    runner.execute(env=os.environ | {"HOWSURE_URL": url, "OMP_NUM_THREADS": "1"})

    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    printed = [out for out in outputs if out.output_type == "stream"]
    shown = [out.data["text/html"] for out in outputs if out.output_type == "execute_result"]
    assert len(printed) + len(shown) == len(outputs), outputs
    assert all(out.name == "stdout" for out in printed), printed
    assert [html.count("<svg") > 3 for html in shown] == [True] * (name == "outputs")
    said = "".join(out.text for out in printed)
    assert re.search(SAID[name], said, re.DOTALL), said
