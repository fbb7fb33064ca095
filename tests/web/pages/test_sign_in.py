"""Signing in: a key once, then a cookie that reads, and forms from its own pages."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, assert_nothing_inline, elements
from runner_children import wait_until

from service.access.api_keys import make_pepper, revoke_key
from service.access.authenticator import ActiveKeys
from service.access.page_session import IDLE_SECONDS, new_session
from service.storage.api_keys import active_keys
from service.storage.tenants import ALL_TENANTS

OK, SEE_OTHER = httpx.codes.OK, httpx.codes.SEE_OTHER
UNAUTHORIZED, FORBIDDEN = httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN
COOKIE = "howsure-session"
FILES = [("calibration", ("c.csv", logits_of())), ("name", (None, "by-form"))]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("signed")) as found:
        yield found


@pytest.fixture(scope="module")
def key(service: KeyedService) -> str:
    return service.make_known("lab").text


@pytest.fixture
def signed(visitor: Visitor, key: str) -> Visitor:
    visitor.sign_in(key)
    return visitor


def test_pages_lead_to_the_sign_in_and_programs_get_401(service, visitor) -> None:
    led = visitor.open("/report?calibration=a&x=b")
    assert led.status_code == SEE_OTHER
    assert led.headers["location"] == "/sign-in?next=%2Freport%3Fcalibration%3Da%26x%3Db"
    for accept in ("*/*", "text/html;q=0.5, application/json"):
        told = service.client().get("/calibrations", headers={"Accept": accept})
        assert told.status_code == UNAUTHORIZED
        assert told.headers["content-type"] == "application/problem+json"
    part = visitor.client.get("/pages/jobs", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (UNAUTHORIZED, "/sign-in?next=%2F")


def test_a_signed_in_reader_sees_pages_and_the_api(visitor, key) -> None:
    answer = visitor.sign_in(key, next="/report?calibration=a")
    assert (answer.status_code, answer.headers["location"]) == (SEE_OTHER, "/report?calibration=a")
    [cookie] = [c for c in answer.headers.get_list("set-cookie") if c.startswith(COOKIE)]
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/"} <= flags
    assert "secure" not in flags
    home = visitor.open("/")
    assert home.status_code == OK
    assert key.split("_")[1] in home.text
    assert "Sign out" in home.text
    assert key.split("_")[2] not in home.text + cookie
    assert visitor.client.get("/calibrations").status_code == OK


def test_a_cookie_changes_nothing_by_itself(signed, key) -> None:
    """What another site can make a browser send is refused; of forms see also test_forms."""
    signed.open("/")
    client = signed.client
    for path in ("/calibrate", "/calibrations/x/promote", "/predict"):
        answer = client.post(path, files=FILES, headers={"Accept": "*/*"})
        assert answer.status_code == UNAUTHORIZED, path
    assert client.get("/calibrations").json()["calibrations"] == []


def test_invalid_keys_are_refused(visitor) -> None:
    for sent in ("", "cal_x", "é"):
        answer = visitor.sign_in(sent)
        assert answer.status_code == UNAUTHORIZED
        assert COOKIE not in answer.headers.get("set-cookie", "")


def test_a_key_that_may_not_read_does_not_sign_in(service, visitor) -> None:
    answer = visitor.sign_in(service.make_known("lab", "predict").text)
    assert answer.status_code == FORBIDDEN
    assert "`read`" in answer.text
    assert COOKIE not in visitor.client.cookies


OTHER_SITES = [
    "//evil.example",
    "https://evil.example",
    "/\\evil.example",
    "javascript:x",
    "/\r\nx",
    "x",
]


@pytest.mark.parametrize("target", OTHER_SITES)
def test_the_sign_in_leads_to_no_other_site(visitor, key, target) -> None:
    assert visitor.sign_in(key, next=target).headers["location"] == "/"


def test_a_session_ends_with_its_key(service, visitor) -> None:
    made = service.make_known("lab")
    visitor.sign_in(made.text)
    assert visitor.open("/").status_code == OK
    with service.database() as database:
        revoke_key(database, made.id)
    assert wait_until(lambda: visitor.open("/").status_code == SEE_OTHER)


def test_pages_renew_a_session_and_parts_that_reload_do_not(service, visitor, key) -> None:
    pepper = make_pepper(service.settings.key_pepper, service.settings.data_dir)
    now = new_session(key.split("_")[1])
    with service.database() as database, database.reading(ALL_TENANTS) as session:
        keys = ActiveKeys(active_keys(session), pepper=pepper)
    for seconds, path, status, is_renewed in (
        (IDLE_SECONDS - 60, "/pages/jobs", OK, False),
        (IDLE_SECONDS - 60, "/", OK, True),
        (IDLE_SECONDS, "/", SEE_OTHER, False),
    ):
        session = replace(now, seen=now.seen - seconds)
        value = session.written(keys.session_secret(now.key_id))
        answer = visitor.client.get(path, headers={"Cookie": f"{COOKIE}={value}"})
        assert answer.status_code == status
        assert (f"{COOKIE}=" in answer.headers.get("set-cookie", "")) == is_renewed


def test_over_tls_the_cookie_is_for_tls_and_this_host_alone(service, key) -> None:
    """A proxy on this machine ends TLS, and says so."""
    visitor = Visitor(service, **{"X-Forwarded-Proto": "https"})
    answer = visitor.send("/sign-in", key=key)
    [cookie] = [c for c in answer.headers.get_list("set-cookie") if COOKIE in c]
    assert cookie.startswith("__Host-")
    assert "secure" in cookie.lower()
    home = visitor.client.get("/", headers={"Cookie": cookie.partition(";")[0]})
    assert home.status_code == OK


def test_signing_out_ends_the_session_and_both_are_audited(service, signed, key) -> None:
    signed.open("/")
    answer = signed.send("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (SEE_OTHER, "/sign-in")
    assert signed.open("/").status_code == SEE_OTHER
    asked = {"key_id": key.split("_")[1], "limit": 2}
    rows = service.client(key).get("/audit", params=asked).json()["entries"]
    said = [(row["action"], row["via"], row["result"]) for row in rows]
    assert said == [("sign-out", "page", "accepted"), ("sign-in", "page", "accepted")]


def test_sign_ins_are_limited_and_audited_once_an_hour(service, visitor) -> None:
    key = service.make_known("limited").text
    client = service.client(key)
    for _ in range(3):
        assert visitor.sign_in(key).status_code == SEE_OTHER
    rows = client.get("/audit", params={"action": "sign-in"}).json()["entries"]
    assert len(rows) == 1
    service.limit(client, "limited", requests_per_second=1)

    def is_answered(status: int) -> bool:
        return visitor.sign_in(key).status_code == status

    for status in (SEE_OTHER, httpx.codes.TOO_MANY_REQUESTS):
        assert wait_until(partial(is_answered, status))


def test_the_sign_in_and_errors_have_nothing_inline(visitor, key) -> None:
    pages = [visitor.open("/sign-in")]
    visitor.sign_in(key)
    pages += [visitor.open(path) for path in ("/", "/nothing", "/report?calibration=x")]
    for page in pages:
        assert_nothing_inline(page)
        tags = [tag for tag, _ in elements(page.text)]
        assert (tags.count("h1"), tags.count("style")) == (1, 0)
