"""Markdown tables, including those of the throughput."""

import statistics
from collections.abc import Iterable, Sequence

from serve.cells import IN_PROCESS, Cell, Numbers

Repeats = dict[Cell, list[Numbers]]
# What a body of ours is held against: numbers written out, or their bytes.
BARE_BODY = {"json": "json", "npy": "raw", "oip": "raw"}
PREVIOUS = "howsure, previous"


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table whose first columns are words and the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(names) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [names, rule, *rows])


def numbers_table(measured: Repeats) -> str:
    """Return the medians of each cell over the repeats."""
    names = "model,body,server,rows,connections,req/s,p50 ms,p99 ms,CPU µs/row,PSS MiB,failed"
    rows = []
    for cell in sorted(measured, key=_order):
        found = measured[cell]
        connections = "-" if cell.server == IN_PROCESS else str(cell.connections)
        pss = median(n.pss for n in found)
        rows.append(
            (
                *(cell.network, cell.body, cell.server, str(cell.rows), connections),
                f"{median(n.rate for n in found):.0f}",
                f"{median(n.p50 for n in found) * 1e3:.2f}",
                f"{median(n.p99 for n in found) * 1e3:.2f}",
                f"{median(n.cpu_per_row for n in found) * 1e6:.1f}",
                "-" if cell.server == IN_PROCESS else f"{pss:.0f}",
                str(sum(n.failed for n in found)),
            )
        )
    return markdown(names.split(","), rows, words=3)


def ratios_table(measured: Repeats) -> str:
    """Return the service's values over each other server's: medians of the repeats' ratios."""
    names = "model,body,rows,connections,over,req/s,p50,p99,CPU/row,PSS"
    rows = []
    for cell in sorted(measured, key=_order):
        if cell.server != "howsure":
            continue
        for other in ("bare", "bare, thread", PREVIOUS):
            body = cell.body if other == PREVIOUS else BARE_BODY[cell.body]
            base = Cell(cell.network, cell.rows, cell.connections, body, other)
            if base not in measured:
                continue
            pairs = list(zip(measured[cell], measured[base], strict=True))
            quotients = [
                f"{median(getattr(a, name) / max(getattr(b, name), 1e-9) for a, b in pairs):.2f}"
                for name in ("rate", "p50", "p99", "cpu_per_row", "pss")
            ]
            over = f"{other} ({body})"
            sizes = (str(cell.rows), str(cell.connections), over)
            rows.append((cell.network, cell.body, *sizes, *quotients))
    return markdown(names.split(","), rows, words=2)


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def _order(cell: Cell) -> tuple[str, int, int, str, str]:
    return cell.network, cell.rows, cell.connections, cell.server, cell.body
