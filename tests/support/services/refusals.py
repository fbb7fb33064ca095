"""What a refusal over HTTP says."""

import httpx


def assert_refused(
    response: httpx.Response, location: str | None, *named: str, status: int = 422
) -> None:
    """Check that a response is one problem at a location, whose message names these.

    Without a location it may be anywhere.
    """
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    (error,) = response.json()["errors"]
    assert location in (None, error["location"]), error
    assert not [word for word in named if word not in error["message"]], error
