"""Columns are matched by name in every format and route: right, or refused by name.

The rules of rows and tables are in tests/child; here each route applies them.
"""

import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from refusals import assert_refused
from runner_models import linear, rows, weights
from running_service import (
    JSON,
    NPY,
    NPZ,
    calibrate,
    calibrated,
    dry_run,
    evaluate,
    npy,
    npz,
    refit,
    send,
)

# JSON and CSV have to escape some of these; outputs could be called like the first.
NAMES = ["prob_age", "bmi", 'income, "gross"', "größe", "a:b", "x\\y"]
MODEL = linear().SerializeToString()
ROWS = rows(300)
LABELS = (ROWS @ weights()).argmax(axis=1)
FEW, FEW_LABELS = ROWS[:40], LABELS[:40]
UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
CSV = {"Content-Type": "text/csv"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}


class Refused(Exception):
    """The service's words."""


# The name and the values of each column; a name may come twice.
Table = list[tuple[str, np.ndarray]]


def table_of(values: np.ndarray, labels: np.ndarray | None = None) -> Table:
    columns = list(zip(NAMES, values.T, strict=True))
    return columns if labels is None else [*columns, ("label", labels)]


def as_csv(table: Table) -> bytes:
    frame = pd.DataFrame(dict(enumerate(column for _, column in table)))
    return frame.to_csv(index=False, header=[name for name, _ in table]).encode()


def as_parquet(table: Table) -> bytes:
    file, (names, columns) = io.BytesIO(), zip(*table, strict=True)
    pa_parquet.write_table(pa.table([*columns], names=[*names]), file)
    return file.getvalue()


def as_json(table: Table) -> str:
    """Return rows as objects, whose text may have a name twice; every other one in ASCII."""
    lines = []
    for row, numbers in enumerate(zip(*(column.tolist() for _, column in table), strict=True)):
        keys = [json.dumps(name, ensure_ascii=row % 2 == 0) for name, _ in table]
        lines.append(", ".join(f"{key}: {n!r}" for key, n in zip(keys, numbers, strict=True)))
    return "[" + ", ".join(f"{{{line}}}" for line in lines) + "]"


def json_body(reference: str, table: Table) -> bytes:
    return f'{{"calibration": "{reference}", "inputs": {as_json(table)}}}'.encode()


def made(client: httpx.Client, name: str, calibration: bytes, **config: Any) -> str:
    calibrated(client, {"name": name, "bins": 3, **config}, model=MODEL, calibration=calibration)
    return name


@pytest.fixture(scope="module")
def named(client: httpx.Client) -> str:
    return made(client, "named", as_csv(table_of(ROWS, LABELS)))


@pytest.fixture(scope="module")
def chosen(client: httpx.Client) -> str:
    """A calibration whose table had more columns than it reads."""
    table = as_csv([("zip", ROWS[:, 0]), *table_of(ROWS, LABELS)])
    return made(client, "chosen", table, columns={"inputs": NAMES})


@pytest.fixture(scope="module")
def unnamed(client: httpx.Client) -> str:
    return made(client, "unnamed", npz(inputs=ROWS, labels=LABELS))


def predicted(client: httpx.Client, reference: str, content: bytes, kind: dict) -> list[int]:
    response = send(client, reference, content, kind)
    if response.status_code == UNPROCESSABLE:
        raise Refused(response.json()["detail"])
    assert response.status_code == httpx.codes.OK, response.text
    assert "columns" not in response.json()
    return [row["class"] for row in response.json()["predictions"]]


def evaluated(client: httpx.Client, reference: str, content: bytes) -> list[int]:
    """Return the labels if an evaluation finds all of them right."""
    name = f"set {len(client.get(f'/calibrations/{reference}/evaluations').json()['evaluations'])}"
    response = evaluate(client, reference, name, content)
    if response.status_code == UNPROCESSABLE:
        raise Refused(response.json()["detail"])
    assert response.json()["result"]["events"]["1"]["accuracy"] == 1.0, response.text
    return FEW_LABELS.tolist()


ROUTES: dict[str, Callable[[httpx.Client, str, Table], list[int]]] = {
    "predict csv": lambda client, name, table: predicted(client, name, as_csv(table), CSV),
    "predict parquet": lambda client, name, table: predicted(
        client, name, as_parquet(table), PARQUET
    ),
    "predict json": lambda client, name, table: predicted(
        client, name, json_body(name, table), JSON
    ),
    "evaluate csv": lambda client, name, table: evaluated(client, name, as_csv(table)),
    "evaluate parquet": lambda client, name, table: evaluated(client, name, as_parquet(table)),
}
EXTRA = [("zip", FEW[:, 0])]
WRONG: dict[str, tuple[Callable[[Table], Table], list[str]]] = {
    "renamed": (
        lambda table: [(name.replace("bmi", "bmj"), column) for name, column in table],
        ["missing: `bmi`", "did you mean `bmi`?"],
    ),
    "doubled": (lambda table: [*table, ("prob_age", table[0][1])], ["prob_age", "twice"]),
    "missing and extra": (lambda table: [*EXTRA, *table[1:]], ["missing: `prob_age`", "`zip`"]),
}


def few(route: str) -> Table:
    return table_of(FEW, FEW_LABELS if route.startswith("evaluate") else None)


@pytest.mark.parametrize("route", ROUTES)
def test_columns_in_any_order_are_right(client, named, route) -> None:
    table = few(route)
    for order in (table, [table[at] for at in (3, 0, 5, 1, 4, 2, *range(6, len(table)))]):
        assert ROUTES[route](client, named, order) == FEW_LABELS.tolist()


REFUSED_COLUMNS = [
    *((route, "missing and extra") for route in ROUTES),
    *(("predict csv", fault) for fault in WRONG),
]


@pytest.mark.parametrize(("route", "fault"), REFUSED_COLUMNS)
def test_other_columns_are_refused_by_name(client, named, route, fault) -> None:
    change, words = WRONG[fault]
    with pytest.raises(Refused) as refused:
        ROUTES[route](client, named, change(few(route)))
    assert all(word in str(refused.value) for word in words), refused.value


@pytest.mark.parametrize("route", ["predict parquet", "evaluate csv"])
def test_columns_that_are_no_inputs(client, named, chosen, route) -> None:
    """Labels and the sampling design always; all others where a table had more columns."""
    beside = [("label", FEW_LABELS), ("weight", np.ones(40)), ("group", np.arange(40))]
    if route.startswith("evaluate"):
        beside.append(("uncertainty_own", np.ones(40)))
    assert ROUTES[route](client, named, [*beside, *table_of(FEW)]) == FEW_LABELS.tolist()
    assert ROUTES[route](client, chosen, [*EXTRA, *few(route)[::-1]]) == FEW_LABELS.tolist()


def test_an_evaluation_set_of_the_upload_has_the_same_columns(client) -> None:
    table, evaluation = as_csv(table_of(ROWS, LABELS)), as_csv([*EXTRA, *table_of(FEW, FEW_LABELS)])
    parts = {"model": MODEL, "evaluation": evaluation}
    assert_refused(dry_run(client, table, **parts), None, "got also `zip`")
    assert dry_run(client, table, **parts, columns={"inputs": NAMES}).is_success


def test_a_refit_keeps_the_columns(client, named) -> None:
    second = refit(client, named, bins=4).json()["id"]
    table = table_of(FEW)[::-1]
    assert ROUTES["predict json"](client, second, table) == FEW_LABELS.tolist()
    with pytest.raises(Refused, match="`zip`"):
        ROUTES["predict csv"](client, second, [*EXTRA, *table])


def test_a_row_number_is_told(client, named) -> None:
    with pytest.raises(Refused, match=r"index=False"):
        ROUTES["predict csv"](client, named, [("Unnamed: 0", np.arange(40) % 2), *table_of(FEW)])


def test_a_further_set_may_call_its_labels_label(client) -> None:
    """The calibration set calls them otherwise."""
    content = as_csv([*table_of(ROWS), ("target", LABELS)])
    made(client, "target", content, columns={"label": ["target"]})
    for name in ("target", "label"):
        table = [*table_of(FEW), (name, FEW_LABELS)]
        for route in ("evaluate csv", "predict csv"):
            assert ROUTES[route](client, "target", table) == FEW_LABELS.tolist()


def row(**changes: Any) -> str:
    values = dict(zip(NAMES, range(6), strict=True)) | changes
    return json.dumps(values)


WRONG_ROWS = [
    (f"[{row(bmi=None)}]", "inputs[0].bmi", "has none"),
    (f"[{row(bmi='22')}]", "inputs[0].bmi", "a string"),
    (f"[{row(bmi=[22])}]", "inputs[0].bmi", "a list"),
    (f"[{row(bmi={'a': 1})}]", "inputs[0].bmi", "an object"),
    (f"[{row()}]".replace(": 1", ": 1e999", 1), "inputs[0].bmi", "out of range"),
    (f"[{row()}, [1, 2, 3, 4, 5, 6]]", "inputs[1]", "by column name"),
    (f"[[1, 2, 3, 4, 5, 6], {row()}]", "inputs[1]", "got an object"),
    (row(), "inputs", "in a list"),
    (f"[{row(bmi=1e39)}]", "inputs[0][1]", "32-bit float"),
]


@pytest.mark.parametrize(("inputs", "location", "named_words"), WRONG_ROWS)
def test_a_wrong_row_is_named(client, named, inputs, location, named_words) -> None:
    body = f'{{"calibration": "{named}", "inputs": {inputs}}}'
    response = client.post("/predict", content=body, headers=JSON)
    assert_refused(response, location, named_words)


def test_large_bodies_of_named_rows(client, named) -> None:
    """Commas in names are not numbers, however many there are."""
    body = json_body(named, table_of(np.tile(FEW, (250, 1))))
    assert len(body) > 2**20
    assert predicted(client, named, body, JSON) == np.tile(FEW_LABELS, 250).tolist()
    one_more = send(client, named, json_body(named, table_of(np.tile(FEW, (251, 1)))), JSON)
    assert one_more.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_named_rows_need_names(client, unnamed) -> None:
    response = client.post("/predict", json={"calibration": unnamed, "inputs": [{"prob_age": 1.0}]})
    assert_refused(response, "inputs")


UNNAMED_ROWS = [({"inputs": inputs}, JSON) for inputs in (FEW.tolist(), {"x": FEW.tolist()})]
UNNAMED_ROWS += [(npy(FEW), NPY), (npz(inputs=FEW), NPZ)]


@pytest.mark.parametrize(("body", "kind"), UNNAMED_ROWS)
def test_rows_without_names_are_told(client, named, unnamed, body, kind) -> None:
    for name, mark in ((named, {"columns": "positional"}), (unnamed, {})):
        sent = body | {"calibration": name} if isinstance(body, dict) else body
        response = send(client, name, sent, kind).json()
        assert {key: response[key] for key in response.keys() & {"columns"}} == mark
        assert [line["class"] for line in response["predictions"]] == FEW_LABELS.tolist()
        accept = {"Accept": "application/x-npz"}
        header = send(client, name, sent, kind | accept).headers["Howsure-Calibration"]
        assert header.endswith("; columns=positional") == bool(mark)


WRONG_NUMBERS = [
    (NAMES[:5], "1 column too few"),
    ([*NAMES, "last"], "1 column too many (after the first 6: `last`)"),
    (["customer_id", *NAMES], "1 column too many (perhaps `customer_id`)"),
]


@pytest.mark.parametrize(("names", "advice"), WRONG_NUMBERS)
def test_a_wrong_number_of_columns_names_rows_and_columns(client, named, names, advice) -> None:
    width = len(names)
    values = np.tile(ROWS, (1, 2))[:, :width]
    table = as_csv([*zip(names, values.T, strict=True), ("label", LABELS)])
    response = calibrate(client, model=MODEL, calibration=table, config="{}")
    shape = f"[300, {width}]"
    assert_refused(response, None, "[rows, 6]", shape, advice, *(f"`{name}`" for name in names))
    by_list = client.post("/predict", json={"calibration": named, "inputs": values.tolist()})
    assert_refused(by_list, None, shape, *(f"`{name}`" for name in NAMES))


def test_a_column_nearly_called_label_may_be_a_feature(client) -> None:
    table = list(zip([*NAMES[:5], "w_label"], ROWS.T, strict=True))
    content = as_csv([*table, ("topic", LABELS)])
    response = calibrate(client, model=MODEL, calibration=content, config="{}")
    assert_refused(response, None, "rename `w_label` to `label`", "--columns label='its name'")
