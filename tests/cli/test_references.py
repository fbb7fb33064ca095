"""What the caller names is one segment of an address, whatever it holds."""

from urllib.parse import unquote

import httpx
import pytest

from howsure.client.request import address_of
from service.cli.console import require_version
from service.cli.failure import CommandFailed


@pytest.mark.parametrize("name", ["digits#2", "a?b", "a/b", "50 %41", "a%2Fb", "é", "digits@3"])
def test_every_character_arrives(name: str) -> None:
    url = httpx.URL("http://service" + address_of(name, "evaluations", name))

    segments = [unquote(segment) for segment in url.raw_path.decode("ascii").split("/")]
    assert segments == ["", "calibrations", name, "evaluations", name]
    assert (url.fragment, url.query) == ("", b"")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_no_path_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        address_of(name)


def test_a_version_or_an_id_is_required() -> None:
    require_version("digits@3")
    require_version("123e4567-e89b-12d3-a456-426614174000")
    with pytest.raises(CommandFailed, match="digits@1"):
        require_version("digits")
