"""``howsure compare``: calibrations side by side, on a set that they have in common."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from howsure.client.request import Request
from service.cli.connection import service_client
from service.cli.console import UrlOption, add_row, number, print_table, say, table_of

Json = Mapping[str, Any]
COMPARED_SCORES = ("accuracy", "ece_15", "aece", "brier", "nll", "auroc", "aurc", "eor")


def compare(
    first: Annotated[str, typer.Argument(help="Calibration to compare the others with.")],
    others: Annotated[list[str], typer.Argument(help="Ids, names, or name@version.")],
    url: UrlOption = None,
) -> None:
    """Compare the served scores of calibrations with those of the first."""
    with service_client(url) as client:
        params = {"calibration": [first, *others]}
        answer = client.send(Request("GET", "/report", params)).json()
    served = {
        f"{about['name']}@{about['version']}": {k: e["served"] for k, e in one["events"].items()}
        for one in answer["calibrations"]
        for about in [one["calibration"]]
    }
    by_set: dict[str, list[Json]] = {}
    for comparison in answer["comparisons"]:
        by_set.setdefault(comparison["on"], []).append(comparison)
    for found in by_set.values():
        for k in dict.fromkeys(k for one in found for k in one["events"]):
            print_table(_table(k, [one for one in found if k in one["events"]], served))
        for sentence in dict.fromkeys(text for one in found for text in one["sentences"]):
            say(sentence)
        for one in found:
            if one["to_decide"] is not None:
                say("\n  ".join([one["to_decide"]["sentence"], *one["to_decide"]["commands"]]))


def _table(k: str, comparisons: Sequence[Json], served: Mapping[str, Mapping[str, str]]) -> Table:
    """Return the scores of the first calibration and the others on the set that is named."""
    one = comparisons[0]
    rows = {one["first"]: one["judged"][0]}
    rows |= {other["second"]: other["judged"][1] for other in comparisons}
    is_one_set = one["basis"] != "none"
    n_samples = f", {one['judged'][0]['n_samples']:,} samples" if is_one_set else ""
    texts = ("calibration", "served by", *([] if is_one_set else ["scores on"]))
    table = table_of(f"Top-{k} on {one['on']}{n_samples}", texts, COMPARED_SCORES)
    for name, judged in rows.items():
        add_row(
            table,
            name,
            served[name][k],
            *([] if is_one_set else [_set(judged)]),
            *(number(judged["events"][k][score]) for score in COMPARED_SCORES),
        )
    return table


DIGEST = 12


def _set(judged: Json) -> str:
    """Return the set of a calibration's own, and how its scores were computed."""
    if judged["sha256"] is None or judged["n_samples"] is None:
        return "unknown samples"
    how = ", cross-validated" if judged["kind"] == "calibration" else ""
    return (
        f"its {judged['kind']} set {judged['sha256'][:DIGEST]}, "
        f"{judged['n_samples']:,} samples{how}"
    )
