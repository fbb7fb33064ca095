import pytest

from service.reports.charts.drawing import add_marker

DRAWN = (
    '<svg viewBox="0 0 400 300"><g transform="translate(0,50)"><g fill="none" '
    'stroke-miterlimit="10" transform="translate(40,4)"><g class="mark-group role-frame root">'
    '<g transform="translate(0,0)"><path class="background" d="M0,0h300v200h-300Z"/></g></g></g>'
    "</g></svg>"
)


def test_a_mark_is_moved_by_the_numbers_of_the_axes() -> None:
    found = add_marker(DRAWN, most=0.1, at=(0.25, 0.05))
    assert 'transform="translate(40.5 254.5) scale(300 -2000.0)"' in found
    assert '<g class="point" transform="translate(0.25 0.05)">' in found
    assert found.endswith("</g></g></svg>")


PLACES = [((0.25, 0.7), 'translate(0.25 0.1)"'), (None, 'visibility="hidden"')]


@pytest.mark.parametrize(("at", "drawn"), PLACES)
def test_above_the_axis_it_is_at_its_end_and_without_a_place_hidden(at, drawn) -> None:
    assert drawn in add_marker(DRAWN, most=0.1, at=at)


def test_a_picture_without_a_frame_has_no_place_for_one() -> None:
    with pytest.raises(ValueError, match="frame"):
        add_marker("<svg></svg>", most=0.1, at=None)
