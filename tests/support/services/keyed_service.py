"""A service with keys and two tenants, and a valid request for each route."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from databases import opened_database, put_sqlite_file
from runner_children import wait_until
from running_service import quick_config, service_on

from service.access.api_keys import SCOPES, MadeKey, create_key, limit_tenant, make_pepper
from service.settings import Settings
from service.storage.database import Database
from service.storage.schema import upgrade


@dataclass
class KeyedService:
    settings: Settings
    address: tuple[str, int] = ("", 0)
    clients: list[httpx.Client] = field(default_factory=list)
    first: MadeKey | None = None

    def make(self, tenant: str = "default", *scopes: str, days: int = 365) -> MadeKey:
        """Make a key, for everything by default."""
        with self.database() as database:
            pepper = make_pepper(self.settings.key_pepper, self.settings.data_dir)
            wanted = scopes or tuple(SCOPES)
            return create_key(
                database, pepper, name="test", tenant=tenant, scopes=wanted, days=days
            )

    def make_known(self, tenant: str = "default", *scopes: str) -> MadeKey:
        """Make a key and wait until the service knows it."""
        made = self.make(tenant, *scopes)
        client = self.client(made.text)
        # Too many requests with a key that is not known yet are refused as well.
        unknown = (httpx.codes.UNAUTHORIZED, httpx.codes.TOO_MANY_REQUESTS)
        while client.get("/calibrations").status_code in unknown:
            time.sleep(0.1)
        return made

    def database(self) -> AbstractContextManager[Database]:
        return opened_database(self.settings.resolved_database_url())

    def client(self, key: str | None = None) -> httpx.Client:
        """Return a client that sends this key, or none."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = "http://{}:{}".format(*self.address)
        made = httpx.Client(base_url=url, headers=headers, timeout=60)
        self.clients.append(made)
        return made

    def limit(self, client: httpx.Client, tenant: str, **limits: int) -> None:
        """Set limits of a client's tenant, and wait until the service knows; 0 is none."""
        with self.database() as database:
            limit_tenant(database, tenant, limits)
        names = {"requests_per_second": "requests", "rows_per_minute": "rows"}

        def is_known() -> bool:
            usage = client.get("/usage")
            return usage.is_success and all(
                usage.json()[names.get(name, name)]["limit"] == (limit or None)
                for name, limit in limits.items()
            )

        assert wait_until(is_known)


@contextmanager
def keyed_service(folder: Path, *, first: bool = True, **settings: Any) -> Iterator[KeyedService]:
    """Run a service on loopback; with ``first`` there is a key before it starts, which it knows."""
    options = {"data_dir": folder, "device": "cpu", "_env_file": None, **settings}
    made = KeyedService(Settings(**options))
    made.settings.data_dir.mkdir(parents=True, exist_ok=True)
    put_sqlite_file(made.settings.resolved_database_url())
    upgrade(made.settings.resolved_database_url())
    if first:
        made.first = made.make()
    with service_on(folder, on_port=True, **settings) as client:
        made.address = (client.base_url.host, client.base_url.port)
        yield made
        for own in made.clients:
            own.close()


def logits_of(n_classes: int = 3, n: int = 60) -> bytes:
    """Return a small calibration set of a model's outputs, as CSV."""
    lines = ["label," + ",".join(f"logit_{index}" for index in range(n_classes))]
    for row in range(n):
        label = row % n_classes
        sure = 1 + row % 7
        values = [sure if index == (label if row % 5 else 0) else 0 for index in range(n_classes)]
        lines.append(",".join(map(str, [label, *values])))
    return "\n".join(lines).encode()


PAGE = "/pages/calibrations/{calibration_id}"
DECISION = {"author": "somebody", "reason": "to see"}
A_SET = ("c.csv", logits_of())
A_CONFIG = (None, quick_config())
TENSOR = {"name": "logits", "datatype": "FP32", "shape": [1, 3], "data": [3, 0, 0]}


def whole_request(method: str, path: str, calibration: str) -> dict[str, Any]:
    """Return the options of a request that succeeds; the first end of a path that fits tells."""
    coverage = DECISION | {"name": "automatic", "coverage": 0.5}
    form = DECISION | {"name": "automatic", "by": "coverage", "coverage": "50", "despite": "yes"}
    evaluation = [("evaluation", A_SET), ("name", (None, f"set of {time.monotonic_ns()}"))]
    options: dict[tuple[str, str], dict[str, Any]] = {
        ("POST", "/pages/calibrate"): {"files": [("calibration", A_SET)]},
        ("POST", "/calibrate"): {"files": [("calibration", A_SET), ("config", A_CONFIG)]},
        ("POST", "/calibrations/import"): {"json": {}},
        ("POST", "/predict"): {"json": {"calibration": calibration, "logits": [[3, 0, 0]]}},
        ("GET", "/report"): {"params": {"calibration": calibration}},
        ("POST", "/infer"): {"json": {"inputs": [TENSOR]}},
        ("POST", "/refit"): {"json": {"bins": 2}},
        ("GET", "/preview"): {"params": {"coverage": 0.5}},
        ("POST", f"{PAGE}/operating-points"): {"data": form},
        ("POST", f"{PAGE}/operating-points/withdraw"): {"data": DECISION},
        ("POST", "/operating-points"): {"json": coverage},
        ("POST", "/withdraw"): {"json": DECISION},
        ("POST", "/try"): {"files": [("numbers", (None, "[3, 0, 0]"))]},
        ("POST", "/evaluations"): {"files": evaluation},
    }
    of_route = [o for (m, end), o in options.items() if m == method and path.endswith(end)]
    return of_route[0] if of_route else {}


def address_of(path: str, calibration: str) -> str:
    """Return the address of a route for a calibration with a further set called ``again``."""
    values = {
        "{calibration_id}": calibration,
        "{model_name}": calibration,
        "{chart}/{key}": "odds_ratio/1.svg",
        "{row}": "0",
        "{evaluation_name:path}": "again",
        "{model_version}": "1",
        "{name}": "x",
    }
    for name, value in values.items():
        path = path.replace(name, value)
    return path
