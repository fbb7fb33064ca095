"""``make charts``: write what the service reads of the charts, so that it needs no Altair."""

import json
from pathlib import Path

from service.web.charts import CHARTS
from service.web.charts.palette import stylesheet

SPECS = Path(__file__).parent / "specs"
SHEET = Path(__file__).parents[1] / "static" / "charts.css"


def written(name: str) -> str:
    """Return the spec of a chart as its file holds it."""
    return json.dumps(CHARTS[name].spec(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the specs and the style sheet."""
    SHEET.write_text(stylesheet(), encoding="utf-8")
    for name in CHARTS:
        (SPECS / f"{name}.json").write_text(written(name), encoding="utf-8")


if __name__ == "__main__":
    write()
