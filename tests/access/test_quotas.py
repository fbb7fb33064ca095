"""A tenant's stored bytes and unfinished jobs never exceed its limits."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hot_fronts import Answer, Connection, answer_to, request
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import wait_until
from running_service import (
    DIGITS_PARTS,
    calibrated,
    digits,
    kept_files,
    quick_config,
    refit,
    swept_files,
)
from sqlalchemy import JSON, LargeBinary, Text, cast, func, select

from models import Calibration, Evaluation, OperatingPoint
from service.storage.tenants import ALL_TENANTS

pytestmark = pytest.mark.process

CREATED, ACCEPTED = httpx.codes.CREATED, httpx.codes.ACCEPTED
TOO_MANY, NO_ROOM = httpx.codes.TOO_MANY_REQUESTS, httpx.codes.INSUFFICIENT_STORAGE
SET = logits_of(n=500)
# Of the set once it is kept, which is more: numbers of eight bytes in the place of digits.
KEPT_BYTES = 500 * (3 + 1) * 8


@dataclass
class Limited:
    service: KeyedService
    client: httpx.Client
    key: str
    folder: Path

    def usage(self, name: str) -> int:
        return self.client.get("/usage").json()[name]["used"]

    def uploading(self) -> int:
        return self.client.get("/usage").json()["shared"]["uploading-bytes"]["used"]

    def upload(self, name: str = "c", *, dry: bool = False, **headers: str) -> httpx.Response:
        parts = [("calibration", ("c.csv", SET)), ("config", (None, quick_config(name=name)))]
        params = {"dry_run": dry}
        return self.client.post("/calibrate", files=parts, headers=headers, params=params)

    def upload_at_once(self, n: int) -> list[httpx.Response]:
        with ThreadPoolExecutor(n) as threads:
            return list(threads.map(self.upload, map(str, range(n))))

    def limit(self, **limits: int) -> None:
        self.service.limit(self.client, "lab", **limits)

    def head(self, target: str, n_bytes: int) -> bytes:
        """Return the head of an upload with so long a body."""
        headers = {"Content_Length": str(n_bytes), "Authorization": f"Bearer {self.key}"}
        return request("POST", target, Content_Type="multipart/form-data; boundary=b", **headers)

    def answer_to_head(self, n_bytes: int) -> Answer:
        return answer_to(self.head("/calibrate", n_bytes), self.service.address)

    def assert_usage_is_what_lies_there(self) -> None:
        url = self.service.settings.resolved_database_url()
        files = [self.folder / path for path in swept_files(self.folder, url)]
        stored = sum(path.stat().st_size for path in files)
        assert self.usage("stored_bytes") == stored + self.row_bytes()

    def row_bytes(self) -> int:
        """Return the bytes of documents and texts in rows, as the database measures them."""
        with self.service.database() as database, database.reading(ALL_TENANTS) as session:
            is_sqlite = session.get_bind().dialect.name == "sqlite"
            of, kind = (func.length, LargeBinary) if is_sqlite else (func.octet_length, Text)
            lengths = (
                session.scalar(select(func.sum(of(cast(column, kind)))))
                for table in (Calibration, Evaluation, OperatingPoint)
                for column in table.__table__.columns
                if isinstance(column.type, JSON | Text) and column.name != "progress_stage"
            )
            return sum(length or 0 for length in lengths)


@contextmanager
def limited_service(folder: Path, database_url: str, **limits: int) -> Iterator[Limited]:
    """Run a service whose tenants have these limits; no job is run unless there are workers."""
    settings: dict[str, Any] = {"workers": 0, **limits}
    with keyed_service(folder / "data", database_url=database_url, **settings) as service:
        key = service.make_known("lab").text
        yield Limited(service, service.client(key), key, folder / "data")


def test_jobs_beyond_the_limit_are_refused(database_url, tmp_path) -> None:
    """Also by those that come at once and were all let begin; and by a repeated request."""
    with limited_service(tmp_path, database_url, max_tenant_jobs=3) as limited:
        first = limited.upload(**{"Idempotency-Key": "one"})
        assert first.status_code == ACCEPTED
        # So many begin, before the first of them has queued its job.
        answers = limited.upload_at_once(8)
        statuses = Counter(answer.status_code for answer in answers)
        assert statuses == {ACCEPTED: 2, TOO_MANY: 6}
        refused = next(answer for answer in answers if answer.status_code == TOO_MANY)
        assert refused.json()["type"] == "urn:howsure:problem:job-limit-reached"
        assert refused.headers["retry-after"] == "30"
        assert refused.headers["ratelimit-policy"] == '"jobs";q=3;qu="concurrent-requests"'
        assert limited.usage("jobs") == 3

        # Before the body is read.
        assert limited.answer_to_head(100_000_000).status == TOO_MANY
        again = limited.upload(**{"Idempotency-Key": "one"})
        assert again.status_code == ACCEPTED
        assert again.json()["id"] == first.json()["id"]
        assert limited.upload(dry=True).json()["type"] == "urn:howsure:problem:job-limit-reached"

        assert limited.client.post(f"/calibrations/{first.json()['id']}/cancel").is_success
        assert limited.upload().status_code == ACCEPTED
        assert limited.upload().status_code == TOO_MANY
        # What was refused has left nothing.
        limited.assert_usage_is_what_lies_there()


def test_dry_runs_count_as_jobs(database_url, tmp_path) -> None:
    with limited_service(tmp_path, database_url, max_tenant_jobs=1) as limited:
        with Connection(limited.service.address) as connection:
            connection.send(limited.head("/calibrate?dry_run=true", 1000) + b"--b")
            assert wait_until(lambda: limited.upload(dry=True).status_code == TOO_MANY)
            assert limited.upload().status_code == TOO_MANY
        # It ends with its connection.
        assert wait_until(lambda: limited.upload(dry=True).status_code == httpx.codes.OK)
        assert limited.upload(dry=True).status_code == httpx.codes.OK
        assert limited.upload().status_code == ACCEPTED
        assert limited.upload(dry=True).json()["type"] == "urn:howsure:problem:job-limit-reached"


def test_uploads_beyond_the_limit_of_stored_bytes_are_refused(database_url, tmp_path) -> None:
    limit = int(4.5 * KEPT_BYTES)
    with limited_service(tmp_path, database_url, max_tenant_stored_bytes=limit) as limited:
        # Its claimed length alone, before the body; and what comes of one that claims none.
        assert limited.answer_to_head(limit + 1).status == NO_ROOM

        def endless() -> Iterator[bytes]:
            yield b'--b\r\nContent-Disposition: form-data; name="calibration"; filename="c"\r\n\r\n'
            for _ in range(100):
                yield b"x" * limit

        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        with suppress(httpx.WriteError):  # refused, and did not read why
            refused = limited.client.post("/calibrate", content=endless(), headers=kind)
            assert refused.status_code == NO_ROOM
        assert kept_files(limited.folder) == []

        answers = limited.upload_at_once(6)
        assert {answer.status_code for answer in answers} == {ACCEPTED, NO_ROOM}
        assert limited.usage("stored_bytes") <= limit
        while (last := limited.upload("d")).status_code == ACCEPTED:
            pass
        assert last.status_code == NO_ROOM
        assert last.json()["type"] == "urn:howsure:problem:storage-limit-reached"
        used = limited.usage("stored_bytes")
        assert used <= limit
        limited.assert_usage_is_what_lies_there()

        # What is deleted is room.
        taken = next(answer for answer in answers if answer.status_code == ACCEPTED)
        one = limited.client.post(f"/calibrations/{taken.json()['id']}/cancel")
        assert one.is_success
        assert limited.usage("stored_bytes") < used
        assert limited.upload("again").status_code == ACCEPTED


def test_uploads_in_transfer_fill_the_share_of_their_tenant_alone(database_url, tmp_path) -> None:
    limit = 4 * len(SET) + 4 * KEPT_BYTES
    with limited_service(tmp_path, database_url, max_tenant_stored_bytes=limit) as limited:
        service = limited.service
        other = Limited(service, service.client(service.make_known("b").text), "", limited.folder)
        with ExitStack() as stack:
            for _ in range(4):
                connection = stack.enter_context(Connection(service.address))
                connection.send(limited.head("/calibrate", limit // 4) + b"--b")
            assert wait_until(lambda: limited.uploading() == limit)
            for _ in range(3):
                assert limited.upload().status_code == NO_ROOM
                # Nobody else's, and each upload of another counts until its end.
                assert (limited.uploading(), other.uploading()) == (limit, 0)
                assert other.upload().status_code == ACCEPTED
        assert wait_until(lambda: limited.uploading() == 0)
        assert limited.upload().status_code == ACCEPTED


def test_further_sets_exports_and_imports_count_and_refits_do_not(database_url, tmp_path) -> None:
    settings = {"workers": 1, "max_tenant_stored_bytes": 0}
    with limited_service(tmp_path, database_url, **settings) as limited:
        calibrated(limited.client, {"name": "digits"}, **DIGITS_PARTS)
        before, rows = limited.usage("stored_bytes"), limited.row_bytes()
        document = limited.client.get("/calibrations/digits/bins").json()
        assert limited.client.post("/calibrations/import", json=document).status_code == CREATED
        added = limited.usage("stored_bytes") - before
        n_bins = sum(table["quantile_bins"] for table in document["tables"])
        assert added == 128 * n_bins + limited.row_bytes() - rows

        limited.limit(stored_bytes=before + 2 * added - 1)
        further = {"evaluation": ("e.npz", digits("evaluation.npz")), "name": (None, "other")}
        for answer in (
            limited.client.post("/calibrations/import", json=document),
            limited.client.post("/calibrations/digits@1/evaluations", files=further),
            limited.client.get("/calibrations/digits@1/model.onnx"),
            limited.upload(),
        ):
            assert answer.status_code == NO_ROOM, answer.text
            assert answer.headers["retry-after"] == "30"
        assert limited.usage("stored_bytes") == before + added
        assert refit(limited.client, "digits@1", bins=4).json()["status"] == "succeeded"
