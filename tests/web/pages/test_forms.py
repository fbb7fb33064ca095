"""Forms are sent by pages of the service, with keys that may do what the form does."""

import json
from collections.abc import Iterator

import httpx
import pytest
from keyed_service import KeyedService, address_of, keyed_service, whole_request
from model_services import calibrate_pictures, picture_set
from page_visitor import Visitor

from service.access.route_table import ROUTES

OK, FORBIDDEN = httpx.codes.OK, httpx.codes.FORBIDDEN
SENT = [path for method, path in ROUTES if method == "POST" and path.startswith("/pages/")]
PAGE = "/pages/calibrations/digits"
# What a page has for readers whose key has the scope.
SHOWN = {
    "/": ('action="/pages/calibrate', "write"),
    f"{PAGE}/operating-point": ('method="post" id="', "write"),
    f"{PAGE}/try": ('name="numbers"', "predict"),
    f"{PAGE}/try?row=0": ("Answer:", "predict"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("forms")) as found:
        calibrate_pictures(found.client(found.first.text), name="digits")
        yield found


def reader_of(service: KeyedService, key: str) -> Visitor:
    reader = Visitor(service)
    reader.sign_in(key)
    reader.open("/")
    return reader


@pytest.mark.parametrize("path", [*SENT, "/sign-out"])
def test_a_form_of_another_site_is_refused(service, path: str) -> None:
    reader = reader_of(service, service.first.text)
    form = whole_request("POST", path, "digits")
    own = reader.client.headers.pop("Origin")
    foreign = [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
    foreign += [{"Origin": own, "Sec-Fetch-Site": site} for site in ("cross-site", "same-site")]
    for headers in foreign:
        refused = reader.client.post(address_of(path, "digits"), headers=headers, **form)
        assert refused.status_code == FORBIDDEN, headers


@pytest.mark.parametrize("scopes", [("read",), ("read", "predict"), ("read", "write")])
def test_forms_are_for_keys_that_may_send_them(service, scopes: tuple[str, ...]) -> None:
    reader = reader_of(service, service.make_known("default", *scopes).text)
    for page, (form, scope) in SHOWN.items():
        shown = reader.open(page)
        assert (form in shown.text) == (scope in scopes)
        assert shown.status_code == (FORBIDDEN if "row" in page and scope not in scopes else OK)
    reader.open("/")
    row = {"numbers": (None, json.dumps(picture_set()[0][1].tolist()))}
    tried = reader.client.post(f"{PAGE}/try", files=row)
    assert tried.status_code == (OK if "predict" in scopes else FORBIDDEN), tried.text
    form = {"by": "coverage", "coverage": "5", "name": "a"}
    decided = reader.send(f"{PAGE}/operating-points", **form)
    assert (decided.status_code == FORBIDDEN) == ("write" not in scopes)
