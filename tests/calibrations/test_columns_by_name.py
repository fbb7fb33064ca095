"""Columns are matched by name in every format and route: right, or refused by name."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from runner_models import linear, rows, weights
from running_service import JSON, NPY, NPZ, calibrate, calibrated, evaluate, npy, npz, send

from howsure.client import Client, HowsureError

# JSON and CSV have to escape some of these.
NAMES = ["age", "bmi", 'income, "gross"', "größe", "a:b", "x\\y"]
MODEL = linear().SerializeToString()
ROWS = rows(300)
LABELS = (ROWS @ weights()).argmax(axis=1)
FEW = ROWS[:40]
CONFIG: dict[str, Any] = {"bins": 3, "folds": 2, "measures": ["margin"], "selective": []}

NUMBERS = itertools.count()


class Refused(Exception):
    """The service's words."""


# The name and the values of each column; a name may come twice.
Table = list[tuple[str, np.ndarray]]


def table_of(values: np.ndarray, labels: np.ndarray | None = None) -> Table:
    columns = list(zip(NAMES, values.T, strict=True))
    return columns if labels is None else [*columns, ("label", labels)]


def as_csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([name for name, _ in table])
    writer.writerows(zip(*(column.tolist() for _, column in table), strict=True))
    return text.getvalue().encode()


def as_parquet(table: Table) -> bytes:
    file = io.BytesIO()
    names = [name for name, _ in table]
    arrays = [pa.array(column) for _, column in table]
    pa_parquet.write_table(pa.Table.from_arrays(arrays, names=names), file)
    return file.getvalue()


def as_frame(table: Table) -> pd.DataFrame:
    frame = pd.concat([pd.Series(column) for _, column in table], axis=1)
    frame.columns = [name for name, _ in table]
    return frame


def as_json(table: Table) -> str:
    """Return rows as objects, whose text may have a name twice."""
    keys = [json.dumps(name, ensure_ascii=row % 2 == 0) for row in range(2) for name, _ in table]
    lines = []
    for row, numbers in enumerate(zip(*(column.tolist() for _, column in table), strict=True)):
        own = keys[len(table) * (row % 2) :]
        lines.append(", ".join(f"{key}: {n!r}" for key, n in zip(own, numbers, strict=False)))
    return "[" + ", ".join(f"{{{line}}}" for line in lines) + "]"


def json_body(calibration: str, table: Table) -> bytes:
    return f'{{"calibration": "{calibration}", "inputs": {as_json(table)}}}'.encode()


def classes_of(answer: httpx.Response) -> list[int]:
    assert answer.status_code == httpx.codes.OK, answer.text
    assert "columns" not in answer.json()
    return [row["class"] for row in answer.json()["predictions"]]


@pytest.fixture(scope="module")
def named(client: httpx.Client) -> str:
    table = as_csv(table_of(ROWS, LABELS))
    calibrated(client, CONFIG | {"name": "named"}, model=MODEL, calibration=table)
    return "named"


@pytest.fixture(scope="module")
def chosen(client: httpx.Client) -> str:
    """A calibration whose table had more columns than it reads."""
    table = as_csv([("zip", ROWS[:, 0]), *table_of(ROWS, LABELS)])
    config = CONFIG | {"name": "chosen", "columns": {"inputs": NAMES}}
    calibrated(client, config, model=MODEL, calibration=table)
    return "chosen"


@pytest.fixture(scope="module")
def unnamed(client: httpx.Client) -> str:
    archive = npz(inputs=ROWS, labels=LABELS)
    calibrated(client, CONFIG | {"name": "unnamed"}, model=MODEL, calibration=archive)
    return "unnamed"


def by_csv(client: httpx.Client, calibration: str, table: Table) -> list[int]:
    return classes_of(
        _sent(client, calibration, as_csv(table), {"Content-Type": "text/csv"}),
    )


def by_parquet(client: httpx.Client, calibration: str, table: Table) -> list[int]:
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    return classes_of(_sent(client, calibration, as_parquet(table), kind))


def by_frame(client: httpx.Client, calibration: str, table: Table) -> list[int]:
    found = Client(http=client).predict(calibration, as_frame(table))
    assert not found.by_position
    return found.class_.tolist()


def by_json(client: httpx.Client, calibration: str, table: Table) -> list[int]:
    return classes_of(_sent(client, calibration, json_body(calibration, table), JSON))


def by_mappings(client: httpx.Client, calibration: str, table: Table) -> list[int]:
    rows_of = zip(*(column for _, column in table), strict=True)
    names = [name for name, _ in table]
    found = Client(http=client).predict(
        calibration, [dict(zip(names, row, strict=True)) for row in rows_of], rows_per_request=16
    )
    assert not found.by_position
    return found.class_.tolist()


def _sent(client: httpx.Client, name: str, content: bytes, kind: dict[str, str]) -> httpx.Response:
    answer = send(client, name, content, kind)
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        raise Refused(answer.json()["detail"])
    return answer


def evaluation_of(client: httpx.Client, calibration: str, content: bytes) -> list[Any]:
    """Return what an evaluation counts: the share of right answers, and the rows of each bin."""
    answer = evaluate(client, calibration, f"set {next(NUMBERS)}", content)
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        raise Refused(answer.json()["detail"])
    assert answer.json()["status"] == "succeeded", answer.text
    event = answer.json()["result"]["events"]["1"]
    return [event["accuracy"], event["measures"]["margin"]["occupancy"]]


def evaluated_csv(client: httpx.Client, calibration: str, table: Table) -> list[Any]:
    return evaluation_of(client, calibration, as_csv(table))


def evaluated_parquet(client: httpx.Client, calibration: str, table: Table) -> list[Any]:
    return evaluation_of(client, calibration, as_parquet(table))


ROUTES = {
    "predict csv": by_csv,
    "predict parquet": by_parquet,
    "predict data frame": by_frame,
    "predict json": by_json,
    "predict mappings": by_mappings,
    "evaluate csv": evaluated_csv,
    "evaluate parquet": evaluated_parquet,
}
TABLES = [name for name in ROUTES if name not in ("predict json", "predict mappings")]
EXTRA = [("zip", FEW[:, 0])]
RIGHT: dict[str, Callable[[Table], Table]] = {
    "in order": lambda table: table,
    "reversed": lambda table: table[::-1],
    "shuffled": lambda table: [table[at] for at in (3, 0, 5, 1, 4, 2, *range(6, len(table)))],
}
WRONG: dict[str, tuple[Callable[[Table], Table], Sequence[str]]] = {
    "missing": (lambda table: [table[0], *table[2:]], ["missing: `bmi`"]),
    "extra": (lambda table: [*EXTRA, *table], ["`zip`"]),
    "renamed": (
        lambda table: [(name.replace("bmi", "bmj"), column) for name, column in table],
        ["missing: `bmi`", "did you mean `bmi`?"],
    ),
    "doubled": (lambda table: [*table, ("age", table[1][1])], ["age", "twice"]),
    "doubled and missing": (lambda table: [table[0], table[0], *table[2:]], ["age", "twice"]),
    "missing and extra": (lambda table: [*EXTRA, *table[1:]], ["missing: `age`", "`zip`"]),
}


def asked(route: str, change: Callable[[Table], Table]) -> Table:
    is_labelled = route.startswith("evaluate")
    return change(table_of(FEW, LABELS[:40] if is_labelled else None))


@pytest.mark.parametrize("order", RIGHT)
@pytest.mark.parametrize("route", ROUTES)
def test_columns_in_any_order_are_right(client, named, unnamed, route, order) -> None:
    found = ROUTES[route](client, named, asked(route, RIGHT[order]))
    if route.startswith("evaluate"):
        archive = npz(inputs=FEW, labels=LABELS[:40])
        assert found == evaluation_of(client, unnamed, archive)
        assert found[0] == 1.0
    else:
        assert found == LABELS[:40].tolist()


FAULTS = [
    (route, fault)
    for route in ROUTES
    for fault in WRONG
    # A mapping has no name twice.
    if route != "predict mappings" or not fault.startswith("doubled")
]


@pytest.mark.parametrize(("route", "fault"), FAULTS)
def test_other_columns_are_refused_by_name(client, named, route, fault) -> None:
    change, words = WRONG[fault]
    # pandas itself writes no doubled columns, and says which.
    with pytest.raises((Refused, HowsureError, ValueError)) as refused:
        ROUTES[route](client, named, asked(route, change))
    if route != "predict data frame" or not fault.startswith("doubled"):
        assert refused.type is not ValueError
        assert all(word in str(refused.value) for word in words), refused.value


def assert_all_right(route: str, found: list[Any]) -> None:
    if route.startswith("evaluate"):
        assert found[0] == 1.0
    else:
        assert found == LABELS[:40].tolist()


@pytest.mark.parametrize("route", TABLES)
def test_labels_and_the_sampling_design_are_no_other_columns(client, named, route) -> None:
    beside = [("label", LABELS[:40]), ("weight", np.ones(40)), ("group", np.arange(40))]
    if route.startswith("evaluate"):
        beside.append(("uncertainty_own", np.ones(40)))
    assert_all_right(route, ROUTES[route](client, named, [*beside, *table_of(FEW)]))


@pytest.mark.parametrize("route", TABLES)
def test_other_columns_of_a_chosen_table_are_not_read(client, chosen, route) -> None:
    table = asked(route, lambda table: [*EXTRA, *table[::-1]])
    assert_all_right(route, ROUTES[route](client, chosen, table))


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_an_evaluation_set_of_the_upload_has_the_same_columns(client, write) -> None:
    sets = {"calibration": write(table_of(ROWS, LABELS))}
    other = write([*EXTRA, *table_of(FEW, LABELS[:40])])
    refused = calibrate(client, model=MODEL, evaluation=other, config=json.dumps(CONFIG), **sets)
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "got also `zip`" in refused.json()["detail"]
    assert "; leave it out" in refused.json()["detail"]
    config = CONFIG | {"name": "both", "columns": {"inputs": NAMES}}
    assert calibrated(client, config, model=MODEL, evaluation=other, **sets)


def test_a_refit_keeps_the_columns(client, named) -> None:
    answer = client.post(
        f"/calibrations/{named}/refit", json={"bins": 4}, headers={"Prefer": "wait=60"}
    )
    assert answer.json()["status"] == "succeeded", answer.text
    assert by_json(client, named, table_of(FEW)[::-1]) == LABELS[:40].tolist()
    with pytest.raises(Refused, match="`zip`"):
        by_csv(client, named, [*EXTRA, *table_of(FEW)])


@pytest.mark.parametrize("name", ["Unnamed: 0", ""])
@pytest.mark.parametrize("send_table", [by_csv, evaluated_csv])
def test_a_row_number_is_told(client, named, send_table, name) -> None:
    with pytest.raises(Refused, match=r"index=False"):
        send_table(client, named, [(name, np.arange(40) % 2), *table_of(FEW)])


def test_a_further_set_may_call_its_labels_label(client) -> None:
    """The calibration set calls them otherwise."""
    *inputs, (_, labels) = table_of(ROWS, LABELS)
    config = CONFIG | {"name": "target", "columns": {"label": ["target"]}}
    calibrated(client, config, model=MODEL, calibration=as_csv([*inputs, ("target", labels)]))
    for name in ("target", "label"):
        table = [*table_of(FEW), (name, LABELS[:40])]
        assert evaluated_csv(client, "target", table)[0] == 1.0


def row(**changes: Any) -> str:
    values = dict(zip(NAMES, range(6), strict=True)) | changes
    return json.dumps({name: value for name, value in values.items() if value != ""})


@pytest.mark.parametrize(
    ("inputs", "location", "message"),
    [
        (f"[{row()}, {row(bmi='')}]", "inputs[1]", "missing: `bmi`"),
        (f"[{row(label=1)}]", "inputs[0]", "unknown: `label`; leave other names out"),
        (f"[{row(bmi=None)}]", "inputs[0].bmi", "calibration set has none in this input"),
        (f"[{row(bmi='22')}]", "inputs[0].bmi", "got a string"),
        (f"[{row(bmi=[22])}]", "inputs[0].bmi", "got a list"),
        (f"[{row(bmi={'a': 1})}]", "inputs[0].bmi", "got an object"),
        (f"[{row()}]".replace(": 1", ": 1e999", 1), "inputs[0].bmi", "out of range"),
        (f"[{row()}, [1, 2, 3, 4, 5, 6]]", "inputs[1]", "expected an object by column name"),
        (f"[[1, 2, 3, 4, 5, 6], {row()}]", "inputs[1]", "expected a list, got an object"),
        (f"[{row()}, {{}}]", "inputs[1]", "missing: `age`, `bmi`"),
        (row(), "inputs", "wrap one row of named values in a list"),
        (f"[{row(bmi=1e39)}]", "inputs[0][1]", "does not fit a 32-bit float"),
    ],
)
def test_a_wrong_row_is_named(client, named, inputs, location, message) -> None:
    body = f'{{"calibration": "{named}", "inputs": {inputs}}}'
    answer = client.post("/predict", content=body, headers=JSON)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    (violation,) = answer.json()["errors"]
    assert violation["location"] == location
    assert message in violation["message"]


def test_large_bodies_of_named_rows(client, named) -> None:
    """Commas in names are not numbers, however many there are."""
    many = np.tile(FEW, (250, 1))
    assert len(json_body(named, table_of(many))) > 2**20
    assert by_json(client, named, table_of(many)) == np.tile(LABELS[:40], 250).tolist()
    one_more = send(client, named, json_body(named, table_of(np.tile(FEW, (251, 1)))), JSON)
    assert one_more.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE


def test_named_rows_need_names(client, unnamed) -> None:
    answer = client.post("/predict", json={"calibration": unnamed, "inputs": [{"age": 1.0}]})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "no column names" in answer.json()["detail"]
    assert "data frame" in answer.json()["detail"]


def test_rows_without_names_are_told(client, named, unnamed) -> None:
    bodies: Mapping[str, tuple[Any, dict[str, str]]] = {
        "lists": ({"inputs": FEW.tolist()}, JSON),
        "by input": ({"inputs": {"x": FEW.tolist()}}, JSON),
        "npy": (npy(FEW), NPY),
        "npz": (npz(inputs=FEW), NPZ),
    }
    accept = {"Accept": "application/x-npz"}
    for body, kind in bodies.values():
        for name, told in ((named, {"columns": "positional"}), (unnamed, {})):
            sent = body | {"calibration": name} if isinstance(body, dict) else body
            answer = send(client, name, sent, kind).json()
            assert {key: answer[key] for key in answer.keys() & {"columns"}} == told
            assert [line["class"] for line in answer["predictions"]] == LABELS[:40].tolist()
            header = send(client, name, sent, kind | accept).headers["Howsure-Calibration"]
            assert header.endswith("; columns=positional") == bool(told)
    assert Client(http=client).predict(named, FEW).by_position
    assert not Client(http=client).predict(unnamed, FEW).by_position


def test_the_answer_of_rows_without_names_keeps_to_the_schema(client, named) -> None:
    document = client.get("/openapi.json").json()
    found = document["components"]["schemas"]["PredictAnswer"]["properties"]["columns"]
    assert "positional" in json.dumps(found)


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (NAMES[:5], "1 column too few"),
        ([*NAMES, "last"], "1 column too many (after the first 6: `last`)"),
        (["customer_id", *NAMES], "1 column too many (perhaps `customer_id`)"),
    ],
)
def test_a_wrong_number_of_columns_names_rows_and_columns_of_the_file(
    client, named, names, advice
) -> None:
    width = len(names)
    values = np.tile(ROWS, (1, 2))[:, :width]
    table = list(zip(names, values.T, strict=True))
    answer = calibrate(
        client, model=MODEL, calibration=as_csv([*table, ("label", LABELS)]), config="{}"
    )
    (violation,) = answer.json()["errors"]
    assert f"expected shape [rows, 6], got [300, {width}]" in violation["message"]
    assert all(f"`{name}`" in violation["message"] for name in names)
    assert advice in violation["message"]
    by_list = client.post("/predict", json={"calibration": named, "inputs": values.tolist()})
    (violation,) = by_list.json()["errors"]
    assert f"got [300, {width}]" in violation["message"]
    assert all(f"`{name}`" in violation["message"] for name in NAMES)


def test_a_wrong_number_of_columns_in_a_further_set(client, unnamed) -> None:
    answer = evaluate(client, unnamed, "narrow", npz(inputs=ROWS[:, :5]))
    assert "expected shape [rows, 6], got [300, 5]" in answer.json()["detail"]


def test_a_column_nearly_called_label_may_be_a_feature(client) -> None:
    table = list(zip([*NAMES[:5], "w_label"], ROWS.T, strict=True))
    content = as_csv([*table, ("topic", LABELS)])
    answer = calibrate(client, model=MODEL, calibration=content, config="{}")
    assert "rename `w_label` to `label`; if it is called otherwise" in answer.json()["detail"]
    assert "--columns label='its name'" in answer.json()["detail"]
