"""The process that draws: it may die, and what it cannot draw costs one picture."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from service.reports.charts import drawing
from service.reports.charts.drawing import Renderer


@pytest.fixture(scope="module")
def some(figures):
    return [figure for figure, _ in figures][:4]


def test_a_picture_is_drawn_once(renderer, some):
    first, second = renderer.draw(some), renderer.draw(some)
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_words_are_part_of_what_is_kept(renderer, some):
    other = replace(some[0], title="Another finding")
    assert "Another finding" in renderer.draw([other])[0]
    assert "Another finding" not in renderer.draw([some[0]])[0]


def test_figures_that_are_alike_have_ids_of_their_own(renderer, some):
    ids = [set(re.findall(r' id="(\w+)"', picture)) for picture in renderer.draw(alike(some[0]))]
    assert ids[0]
    assert not ids[0] & ids[1]


def alike(figure):
    return [replace(figure, key=key) for key in ("a", "b")]


def test_a_process_that_is_killed_is_replaced(some):
    with closing(Renderer()) as renderer:
        renderer.warm()
        renderer._process.kill()
        renderer._process.wait()
        assert None not in renderer.draw(some[:1])


def test_a_process_that_does_not_start_is_tried_once_a_page_and_logged(some, tmp_path, monkeypatch):
    broken, starts = tmp_path / "broken.py", tmp_path / "starts"
    broken.write_text(f"open({str(starts)!r}, 'a').write('x')")
    monkeypatch.setattr(drawing, "VEGA_PROCESS", broken)
    with closing(Renderer()) as renderer, structlog.testing.capture_logs() as lines:
        assert renderer.draw(some) == [None] * 4
    assert starts.read_text() == "x"
    assert [(line["event"], line["count"]) for line in lines] == [("pictures_not_drawn", 4)]


def test_what_cannot_be_drawn_costs_one_picture(renderer, some):
    odd = replace(some[0], chart="no such chart")
    assert [picture is None for picture in renderer.draw([odd, *some[:1]])] == [True, False]


def test_threads_have_their_own_pictures(renderer, some):
    told = [[replace(figure, title=f"Finding {at}")] for at, figure in enumerate(some)]
    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(renderer.draw, told))
    for at, (picture,) in enumerate(drawn):
        assert f">Finding {at}</title>" in picture


def test_the_process_is_in_a_sandbox_and_does_not_stay(some):
    with closing(Renderer()) as renderer:
        assert None not in renderer.draw(some)
        process = renderer._process
        status = Path(f"/proc/{process.pid}/status").read_text()
    assert process.poll() is not None
    found = dict(line.split(":", 1) for line in status.splitlines())
    assert (found["Seccomp"].strip(), found["NoNewPrivs"].strip()) == ("2", "1")
    assert int(found["CapEff"], 16) == 0
