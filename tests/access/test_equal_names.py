"""Tenants whose calibrations have equal names get the responses that each gets alone."""

import re
from pathlib import Path

import httpx
import pytest
from keyed_service import KeyedService, address_of, keyed_service, logits_of, whole_request
from running_service import WAIT, calibrated, evaluate

from service.access.route_table import OPEN, ROUTES

pytestmark = [pytest.mark.process, pytest.mark.slow]

GUARDED = [key for key, rule in ROUTES.items() if rule.scopes != OPEN]
POINTS = "/calibrations/{calibration_id}/operating-points"
NAME = "digits"
# Samples and bins of each tenant's calibration.
TENANTS = {"many-bins": (240, 8), "few-bins": (60, 2)}
# Ids, times, durations, sizes and ports differ from run to run.
CHANGING = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,64}"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|\+00:00| UTC)?"
    r'|"(?:\w*seconds|stored_bytes|used|key_id|subject)":\s?[^,}]+'
    r"|127\.0\.0\.1:\d+|clip\d+|set of \d+"
)


def response(client: httpx.Client, method: str, path: str, calibration: str) -> str:
    """Return the status and body of a route's response, without what differs from run to run."""
    reference = NAME if path.startswith("/v2") or path in ("/report", "/predict") else calibration
    if path.endswith("{calibration_id}/delete") or (method, path) == ("DELETE", POINTS[:-17]):
        bins = client.get(f"/calibrations/{calibration}/bins").json()
        copied = client.post("/calibrations/import", json=bins, params={"name": "copy"})
        reference = copied.json()["id"]
    options = {"headers": WAIT} | whole_request(method, path, reference)
    answer = client.request(method, address_of(path, reference), **options)
    text = answer.text
    if path == "/metrics":
        text = "\n".join(line for line in text.splitlines() if calibration in line)
    text = CHANGING.sub("…", text)
    if path == "/audit":  # entries of one moment are in no order
        text = str(sorted(text.split("},{")))
    return f"{answer.status_code} {text}"


def responses(service: KeyedService, tenant: str) -> dict[tuple[str, str], str]:
    """Return what a new tenant gets from each route for its calibration."""
    client = service.client(service.make_known(tenant).text)
    n_samples, n_bins = TENANTS[tenant]
    samples = logits_of(n=n_samples)
    made = calibrated(client, {"name": NAME, "bins": n_bins}, calibration=samples)["id"]
    evaluate(client, made, "again", samples).raise_for_status()
    client.post(address_of(POINTS, made), **whole_request("POST", POINTS, made)).raise_for_status()
    return {key: response(client, *key, made) for key in GUARDED}


def test_no_response_depends_on_a_tenant_with_equal_names(tmp_path: Path) -> None:
    each = []
    for order in (list(TENANTS), list(TENANTS)[::-1]):
        with keyed_service(tmp_path / order[0]) as service:
            each.append({tenant: responses(service, tenant) for tenant in order})
    for tenant in TENANTS:
        for key in GUARDED:
            assert each[0][tenant][key] == each[1][tenant][key], (tenant, key)
    counted = each[0]["few-bins"]["GET", "/metrics"]
    assert re.findall(r'event="top1".*} (.+)', counted)
