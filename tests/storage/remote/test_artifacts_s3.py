"""The artifact store on a real S3 server: what it asks for, and what it makes of failures."""

import dataclasses
import os

import pytest
from databases import put_sqlite_file
from object_stores import BUCKET, Answer, FaultyS3, Half
from severed_address import SeveredAddress

from service.cli.failure import CommandFailed
from service.cli.local import prepare
from service.errors import ArtifactDamaged, Overloaded, StorageFull
from service.settings import Settings
from service.storage.artifact_store import CHUNK_BYTES
from service.storage.remote_store import RetryPolicy, open_remote_store

CALIBRATION = "0b8f6a1e-5d0c-4c3e-9d62-3a1f0c9b7e55"
KEY = f"calibrations/{CALIBRATION}/model-0"
BRIEF = RetryPolicy(first_pause_seconds=0.01, longest_pause_seconds=0.02)
ATTEMPTS = 1 + BRIEF.retries


@pytest.fixture
def faulty(s3_server, lead_to_s3):
    with FaultyS3(s3_server.port) as faulty:
        lead_to_s3(faulty.port)
        yield faulty


@pytest.fixture
def store(faulty, s3_folder):
    return open_remote_store(f"s3://{BUCKET}/{s3_folder}", retry=BRIEF)


def upload(tmp_path, size=3 * CHUNK_BYTES):
    path = tmp_path / "upload"
    path.touch()
    os.truncate(path, size)
    return path


def test_a_small_file_is_one_request_and_a_large_one_goes_in_parts(store, faulty, tmp_path):
    store.put_file(KEY, upload(tmp_path, 1000))
    assert [method for method, _ in faulty.requests] == ["PUT"]
    faulty.requests.clear()
    store.put_file(KEY, upload(tmp_path))
    assert faulty.count("PUT", "partNumber=") == 3
    assert faulty.count("POST", "uploads") == 1


def test_many_are_deleted_by_few_requests(store, faulty):
    keys = [f"calibrations/{CALIBRATION}/shards/{i}" for i in range(1500)]
    store.put_bytes(keys[-1], b"")
    store.delete(keys)
    assert store.keys() == []
    assert (faulty.count("POST", "?delete"), faulty.count("DELETE")) == (2, 0)


def test_half_an_answer_is_none_and_asked_for_again(store, faulty, tmp_path):
    stored = store.put_file(KEY, upload(tmp_path))
    faults = iter([Half()])
    faulty.fault = lambda _: next(faults, None)
    with store.local_path(KEY, stored.sha256) as path:
        assert path.stat().st_size == stored.size
    assert faulty.count("GET") > 1
    faulty.fault = lambda _: Half()
    for read in (
        lambda: store.get_bytes(KEY, stored.sha256),
        lambda: store.local_path(KEY, stored.sha256).__enter__(),
        lambda: store.unverified_path(KEY).__enter__(),
    ):
        with pytest.raises(Overloaded, match="does not answer"):
            read()


def test_a_server_that_fails_now_and_then_is_asked_again(store, faulty, tmp_path):
    answers = {1: Answer(500), 2: Answer(503, "SlowDown")}
    faulty.fault = lambda request: answers.get(faulty.requests.count(request))
    stored = store.put_file(KEY, upload(tmp_path))
    with store.local_path(KEY, stored.sha256) as path:
        assert path.stat().st_size == stored.size
    assert store.keys() == [KEY]
    store.delete([KEY])
    with pytest.raises(ArtifactDamaged, match="missing"):
        store.get_bytes(KEY, stored.sha256)


def test_a_server_that_fails_each_time_is_given_up(store, faulty):
    faulty.fault = lambda _: Answer(503, "SlowDown")
    for use in (
        lambda: store.put_bytes(KEY, b"x"),
        lambda: store.get_bytes(KEY, "0" * 64),
        lambda: store.delete([KEY]),
        store.keys,
    ):
        faulty.requests.clear()
        with pytest.raises(Overloaded, match="SlowDown"):
            use()
        assert len(faulty.requests) == ATTEMPTS


def test_an_upload_whose_parts_fail_is_taken_back(store, faulty, s3_server, s3_folder, tmp_path):
    faulty.fault = lambda request: Answer(500) if "partNumber=2" in request[1] else None
    with pytest.raises(Overloaded):
        store.put_file(KEY, upload(tmp_path))
    assert faulty.count("DELETE", "uploadId") == 1
    assert not [name for name in s3_server.objects() if name.startswith(s3_folder)]


def test_a_store_without_space_is_full(store, faulty, tmp_path):
    for answer in (
        Answer(507, "XMinioStorageFull"),
        Answer(403, "QuotaExceeded"),
        Answer(400, "XMinioAdminBucketQuotaExceeded"),
    ):
        faulty.fault = lambda _, answer=answer: answer
        with pytest.raises(StorageFull):
            store.put_bytes(KEY, b"x")
        with pytest.raises(StorageFull):
            store.put_file(KEY, upload(tmp_path))


def test_a_server_that_is_gone_or_silent_is_not_waited_for(s3_server, s3_folder, lead_to_s3):
    with SeveredAddress("127.0.0.1", s3_server.port) as address:
        lead_to_s3(address.port)
        brief = dataclasses.replace(BRIEF, read_seconds=0.5)
        store = open_remote_store(f"s3://{BUCKET}/{s3_folder}", retry=brief)
        stored = store.put_bytes(KEY, b"content")
        for disturb, reason in ((address.cut, "no connection"), (address.silence, "time is up")):
            disturb()
            with pytest.raises(Overloaded, match=reason):
                store.get_bytes(KEY, stored.sha256)
            address.restore()
            assert store.get_bytes(KEY, stored.sha256) == b"content"


# An environment that does not let the service in, and what the error names.
MISTAKES = {
    "bucket": ({}, "bucket"),
    "secret": ({"AWS_SECRET_ACCESS_KEY": "x"}, "SignatureDoesNotMatch"),
    "http": ({"AWS_ALLOW_HTTP": "false"}, "AWS_ALLOW_HTTP"),
    "clock": ({}, "clock"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_store_that_keeps_the_service_out_ends_the_start(tmp_path, faulty, lead_to_s3, mistake):
    variables, word = MISTAKES[mistake]
    put_sqlite_file(f"sqlite:///{tmp_path / 'howsure.sqlite3'}")
    lead_to_s3(faulty.port, **variables)
    if mistake == "clock":  # as an S3 server says it, of signatures too
        faulty.fault = lambda _: Answer(403, "RequestTimeTooSkewed")
    url = f"s3://{'absent' if mistake == 'bucket' else BUCKET}/folder"
    settings = Settings(_env_file=None, data_dir=tmp_path, artifacts_url=url)
    with pytest.raises(CommandFailed, match=f"^HOWSURE_ARTIFACTS_URL: .*{word}"):
        prepare(settings)
