"""Signing in: a key once, then a cookie that reads, and forms that say where they are from."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import Visitor, elements

from service.access.api_keys import make_pepper, revoke_key
from service.access.authenticator import ActiveKeys
from service.access.page_session import ABSOLUTE_SECONDS, IDLE_SECONDS, PageSession, new_session

OK, SEE_OTHER = httpx.codes.OK, httpx.codes.SEE_OTHER
UNAUTHORIZED, FORBIDDEN = httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN
# A guard against hanging.
WITHIN_SECONDS = 60.0
COOKIE = "howsure-session"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    folder = tmp_path_factory.mktemp("signed")
    with keyed_service(folder) as found:
        yield found


@pytest.fixture(scope="module")
def key(service: KeyedService) -> str:
    made = service.make("lab").text
    until(lambda: service.client(made).get("/calibrations").status_code == OK)
    return made


@pytest.fixture
def visitor(service: KeyedService) -> Visitor:
    return visit(service)


def visit(service: KeyedService, **headers: str) -> Visitor:
    return Visitor(service, **headers)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def signed(service: KeyedService, session: PageSession) -> str:
    """Return a cookie as the service writes it."""
    pepper = make_pepper(service.settings.key_pepper, service.settings.data_dir)
    return session.written(ActiveKeys([], pepper=pepper).session_secret)


def test_pages_lead_to_the_sign_in_and_programs_are_told(service, visitor) -> None:
    led = visitor.open("/report?calibration=a&x=b")
    assert led.status_code == SEE_OTHER
    assert led.headers["location"] == "/sign-in?next=%2Freport%3Fcalibration%3Da%26x%3Db"
    for accept in ("*/*", "application/json", "text/html;q=0.5, application/json"):
        told = service.client().get("/calibrations", headers={"Accept": accept})
        assert told.status_code == UNAUTHORIZED
        assert told.headers["content-type"] == "application/problem+json"
    part = visitor.client.get("/pages/jobs", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (UNAUTHORIZED, "/sign-in?next=%2F")


def test_who_signs_in_reads_pages_and_what_they_link_to(service, visitor, key) -> None:
    answer = visitor.sign_in(key, next="/report?calibration=a")
    assert (answer.status_code, answer.headers["location"]) == (SEE_OTHER, "/report?calibration=a")
    [cookie] = [c for c in answer.headers.get_list("set-cookie") if c.startswith(COOKIE)]
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/"} <= flags
    assert "secure" not in flags
    assert key.split("_")[2] not in cookie
    home = visitor.open("/")
    assert home.status_code == OK
    assert key.split("_")[1] in home.text
    assert key.split("_")[2] not in home.text
    assert visitor.client.get("/calibrations").status_code == OK


def test_a_cookie_changes_nothing_by_itself(service, visitor, key) -> None:
    """What another site can make a browser send is refused, at the API and at the forms."""
    visitor.sign_in(key)
    visitor.open("/")
    client, token = visitor.client, visitor.token()
    files = [("calibration", ("c.csv", logits_of()))]
    for path in ("/calibrate", "/calibrations/x/promote", f"/calibrate?csrf={token}", "/predict"):
        answer = client.post(path, files=files, headers={"Accept": "*/*", "X-CSRF-Token": token})
        assert answer.status_code == UNAUTHORIZED, path
    for path in ("/pages/calibrate", "/pages/calibrate?csrf=", "/pages/calibrate?csrf=x" + token):
        assert client.post(path, files=files).status_code == FORBIDDEN
    assert client.post("/pages/calibrations/x/cancel").status_code == FORBIDDEN
    assert client.post("/sign-out").status_code == FORBIDDEN
    other = visit(service)
    other.sign_in(key)
    other.open("/")
    assert client.post(f"/pages/calibrate?csrf={other.token()}").status_code == FORBIDDEN
    foreign = {"Sec-Fetch-Site": "cross-site"}
    answer = client.post(f"/pages/calibrate?csrf={token}", files=files, headers=foreign)
    assert answer.status_code == FORBIDDEN
    assert client.get("/calibrations").json()["calibrations"] == []
    # A page that was opened before does not take the key of a form that was sent without it.
    assert client.post("/sign-in", data={"key": key}).status_code == FORBIDDEN


def test_a_key_that_is_none_is_refused_and_not_for_long(tmp_path) -> None:
    with keyed_service(tmp_path, max_bad_keys_per_minute=3) as service:
        visitor = visit(service)
        for sent in ("", "cal_x", "é"):
            answer = visitor.sign_in(sent)
            assert answer.status_code == UNAUTHORIZED
            assert "unknown, revoked, expired or malformed" in answer.text
            assert COOKIE not in answer.headers.get("set-cookie", "")
        assert visitor.sign_in("cal_y").status_code == httpx.codes.TOO_MANY_REQUESTS


def test_a_key_that_may_not_read_does_not_sign_in(service, visitor, key) -> None:
    made = service.make("lab", "predict").text
    until(lambda: service.client(made).get("/calibrations").status_code == FORBIDDEN)
    answer = visitor.sign_in(made)
    assert answer.status_code == FORBIDDEN
    assert "needs the scope `read`" in answer.text
    assert COOKIE not in visitor.client.cookies


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/\r\nx", "x"],
)
def test_it_leads_to_no_other_site(visitor, key, target) -> None:
    assert visitor.sign_in(key, next=target).headers["location"] == "/"


def test_a_session_ends_with_its_key(service, visitor) -> None:
    made = service.make("lab")
    until(lambda: service.client(made.text).get("/calibrations").status_code == OK)
    visitor.sign_in(made.text)
    assert visitor.open("/").status_code == OK
    with service.database() as database:
        revoke_key(database, made.id)
    until(lambda: visitor.open("/").status_code == SEE_OTHER)


def test_a_session_ends_by_itself(service, visitor, key) -> None:
    now = new_session(key.split("_")[1])
    good = replace(now, since=now.since - ABSOLUTE_SECONDS + 60, seen=now.seen - IDLE_SECONDS + 60)
    for session, status in (
        (now, OK),
        (good, OK),
        (replace(now, seen=now.seen - IDLE_SECONDS - 1), SEE_OTHER),
        (replace(now, since=now.since - ABSOLUTE_SECONDS - 1), SEE_OTHER),
    ):
        visitor.client.cookies.clear()
        visitor.client.cookies.set(COOKIE, signed(service, session))
        assert visitor.open("/").status_code == status
    # Who reads on stays; a part that renews itself keeps nobody.
    idle = signed(service, replace(now, seen=now.seen - IDLE_SECONDS + 60))
    visitor.client.cookies.clear()
    for path, is_renewed in (("/pages/jobs", False), ("/", True)):
        answer = visitor.client.get(path, headers={"Cookie": f"{COOKIE}={idle}"})
        assert (COOKIE in answer.headers.get("set-cookie", "")) == is_renewed


def test_a_cookie_that_was_not_written_here_is_none(service, visitor, key) -> None:
    good = signed(service, new_session(key.split("_")[1]))
    other = PageSession.written(new_session(key.split("_")[1]), b"another secret")
    for place in (0, 14, 26, 40, len(good) - 1):
        letter = "1" if good[place] != "1" else "2"
        changed = good[:place] + letter + good[place + 1 :]
        for value in (changed, other, "", good + "x", "é", '"'):
            answer = visitor.client.get("/", headers={"Cookie": f"{COOKIE}={value}".encode()})
            assert answer.status_code == SEE_OTHER


def test_over_tls_the_cookie_is_for_tls_and_this_host_alone(service, key) -> None:
    """A proxy on this machine ends TLS, and says so."""
    visitor = visit(service, **{"X-Forwarded-Proto": "https"})
    visitor.open("/sign-in")
    visit_cookie = visitor.seen.headers["set-cookie"]
    sent = {"Cookie": visit_cookie.partition(";")[0]}
    answer = visitor.client.post(
        "/sign-in", data={"csrf": visitor.token(), "key": key}, headers=sent
    )
    [cookie] = [c for c in answer.headers.get_list("set-cookie") if COOKIE in c]
    for one in (cookie, visit_cookie):
        assert one.startswith("__Host-")
        assert "secure" in one.lower()
    name, _, value = cookie.partition(";")[0].partition("=")
    assert visitor.client.get("/", headers={"Cookie": f"{name}={value}"}).status_code == OK
    plain = {"Cookie": f"{COOKIE}={value}"}
    assert visitor.client.get("/", headers=plain).status_code == SEE_OTHER


def test_signing_out_takes_the_cookie_back_and_both_are_written_down(service, key) -> None:
    visitor = visit(service)
    visitor.sign_in(key)
    visitor.open("/")
    answer = visitor.send("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (SEE_OTHER, "/sign-in")
    assert visitor.open("/").status_code == SEE_OTHER
    key_id = key.split("_")[1]
    rows = service.client(key).get("/audit", params={"key_id": key_id, "limit": 2}).json()
    said = [(row["action"], row["via"], row["result"]) for row in rows["entries"]]
    assert said == [("sign-out", "page", "accepted"), ("sign-in", "page", "accepted")]


def test_an_open_service_asks_for_no_key_and_for_tokens(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        visitor = visit(service)
        assert visitor.open("/sign-in").headers["location"] == "/"
        assert visitor.open("/").status_code == OK
        files = [("calibration", ("c.csv", logits_of())), ("name", (None, "by-form"))]
        assert visitor.client.post("/pages/calibrate", files=files).status_code == FORBIDDEN
        assert visitor.upload(files).status_code == SEE_OTHER


def test_nothing_in_a_page_is_inline_or_from_elsewhere(service, visitor, key) -> None:
    pages = [visitor.open("/sign-in")]
    visitor.sign_in(key)
    pages += [visitor.open("/"), visitor.open("/nothing"), visitor.open("/report?calibration=x")]
    for page in pages:
        assert "text/html" in page.headers["content-type"]
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        for tag, attributes in elements(page.text):
            assert "style" not in attributes
            assert tag != "style"
            assert not any(name.startswith("on") for name in attributes)
            assert tag != "script" or attributes["src"].startswith("/pages/static/")
            for name in ("src", "href", "action"):
                assert (attributes.get(name) or "/").startswith(("/", "#"))
