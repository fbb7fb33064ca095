"""Settings: ``HOWSURE_*`` environment variables or a ``.env`` file, each with a working default."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024**2
GIBIBYTE = 1024**3


class Settings(BaseSettings):
    """Everything an operator may set; read once, by the composition root."""

    model_config = SettingsConfigDict(
        env_prefix="HOWSURE_", env_file=".env", extra="ignore", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address the service listens on.")
    allow_anonymous: bool = Field(
        False,
        description=(
            "Whether others than this machine may be let in without a key, as long as none was "
            "ever made."
        ),
    )
    key_pepper: str = Field(
        "",
        repr=False,
        pattern=r"^(.{16,})?$",
        description=(
            "What digests of API keys are made with, 16 characters at least and the same for all "
            "processes; empty: the file key-pepper in the data dir, made at first use."
        ),
    )
    max_bad_keys_per_minute: int = Field(
        100,
        ge=0,
        description="Keys that are none which an address may send in a minute; 0: any number.",
    )
    max_tenant_requests_per_second: int = Field(
        1000, ge=0, description="Requests that a tenant with keys may send; 0: any number."
    )
    max_tenant_rows_per_minute: int = Field(
        1_000_000, ge=0, description="Rows that a tenant with keys may ask for; 0: any number."
    )
    max_tenant_stored_bytes: int = Field(
        100 * GIBIBYTE,
        ge=0,
        description="Bytes that a tenant with keys may have stored; 0: any number.",
    )
    max_tenant_jobs: int = Field(
        100,
        ge=0,
        description=(
            "Calibrations and evaluations that a tenant with keys may have queued or running; 0: "
            "any number."
        ),
    )
    allowed_hosts: str = Field(
        "",
        pattern=r"^(\*|[A-Za-z0-9._\[\]:-]+(,[A-Za-z0-9._\[\]:-]+)*)?$",
        description=(
            "Names of the service beside those of this machine, as `howsure.example.org`, comma "
            "between; requests to others are refused. `*` or empty with API keys: any."
        ),
    )
    port: int = Field(8000, ge=0, le=65535, description="Port; 0 takes a free one.")
    worker_port: int = Field(
        8001,
        ge=0,
        le=65535,
        description="Port on which `howsure worker` tells of its health; 0 takes a free one.",
    )
    processes: int = Field(
        1, ge=1, le=256, description="Server processes that answer requests, on one port."
    )
    data_dir: Path = Field(
        Path("howsure-data"), description="Folder of the database, the artifacts and the uploads."
    )
    database_url: str = Field(
        "",
        description="`sqlite:///file` or `postgresql+psycopg://…`; empty: SQLite in the data dir.",
    )
    artifacts_url: str = Field(
        "",
        description=(
            "Where artifacts are kept: a folder, `s3://bucket/folder`, `gs://…` or `az://…`; "
            "empty: a folder in the data dir."
        ),
    )
    orphan_seconds: float = Field(
        3600.0,
        ge=1.0,
        description=(
            "Stored files that nothing refers to are removed once nothing was written for their "
            "calibration for so long; an upload that writes nothing for so long counts as dead."
        ),
    )
    scheduler: str = Field(
        "",
        pattern=r"^((tcp|tls|ws|wss)://\S+)?$",
        description=(
            "A Dask scheduler, as `tcp://host:8786`, whose workers run the rows of calibrations; "
            "empty: this process does."
        ),
    )
    shard_resources: str = Field(
        "",
        pattern=r"^(\w+=[0-9]+(\.[0-9]+)?(,\w+=[0-9]+(\.[0-9]+)?)*)?$",
        description="What a part of a set takes of a Dask worker, as `GPU=1`; empty: nothing.",
    )
    keep_inputs: Literal["none", "some", "all"] = Field(
        "some",
        description=(
            "Samples of a calibration set that are kept once it is calibrated: `some` are at most "
            "1,000, likely mislabelled, surest errors and others."
        ),
    )
    device: str = Field(
        "auto",
        pattern=r"^(auto|cpu|cuda|cuda:(0|[1-9][0-9]{0,3})(,cuda:(0|[1-9][0-9]{0,3}))*)$",
        description=(
            "`auto`, `cpu`, `cuda`, `cuda:N` or several, as `cuda:0,cuda:1`; auto is the best "
            "provider that loads."
        ),
    )
    threads: int = Field(
        0, ge=0, description="Threads of one ONNX session; 0: as many as this process may use."
    )
    max_processes: int = Field(
        4, ge=1, le=256, description="Child processes kept warm, one loaded ONNX model each."
    )
    workers: int = Field(
        1, ge=0, le=64, description="Calibrations run at a time by this process; 0 runs none."
    )
    lease_seconds: float = Field(
        30.0, ge=1.0, description="After this long without a sign of life a job is taken over."
    )
    load_timeout_seconds: float = Field(
        120.0, gt=0, description="Time an ONNX model may take to load and answer its trial rows."
    )
    run_timeout_seconds: float = Field(
        60.0, gt=0, description="Time an ONNX model may take for one batch."
    )
    read_timeout_seconds: float = Field(
        300.0,
        gt=0,
        description="Time to open the sets of an upload, and to read each shard of them.",
    )
    allow_unsandboxed: bool = Field(
        default=False,
        description=(
            "Run ONNX models and read sets also where the kernel cannot lock their processes in, "
            "for want of Landlock or seccomp; false: both are refused there."
        ),
    )
    max_process_memory: int = Field(
        0,
        ge=0,
        description=(
            "Bytes that a child process may take for an ONNX model, on the CPU; 0: as much as the "
            "machine, or the service's cgroup, has."
        ),
    )
    max_model_bytes: int = Field(2 * GIBIBYTE, gt=0, description="Largest ONNX file.")
    max_model_data_bytes: int = Field(
        16 * GIBIBYTE, gt=0, description="Largest companion file with external weights."
    )
    max_dataset_bytes: int = Field(
        64 * GIBIBYTE, gt=0, description="Largest calibration or evaluation file."
    )
    max_inflated_bytes: int = Field(
        64 * GIBIBYTE, gt=0, description="Most bytes of a set once it is unpacked and decoded."
    )
    max_samples: int = Field(10_000_000, gt=0, description="Most samples in a data file.")
    max_classes: int = Field(100_000, gt=1, le=2**24, description="Most classes of an ONNX model.")
    max_model_nodes: int = Field(
        50_000,
        gt=0,
        le=2**24,
        description="Most nodes of an ONNX model, its functions counted at each call.",
    )
    max_row_passes: int = Field(
        20_000_000, gt=0, description="Most rows that measures may send through a model for a set."
    )
    max_predict_bytes: int = Field(32 * MEBIBYTE, gt=0, description="Largest /predict body.")
    max_predict_rows: int = Field(10_000, gt=0, description="Most rows in one /predict request.")
    predict_timeout_seconds: float = Field(
        60.0, gt=0, description="Longest time from a prediction's request to its answer."
    )
    predict_queue_rows: int = Field(
        4096, ge=1, description="Rows that may wait for their models; what is more is answered 429."
    )
    predict_queue_bytes: int = Field(
        256 * MEBIBYTE,
        gt=0,
        description="Bytes of bodies that may wait or run, and as many be received.",
    )
    max_batch_rows: int = Field(
        128, ge=1, le=65536, description="Most rows that go through an ONNX model together."
    )
    max_model_memory: int = Field(
        0, ge=0, description="Bytes that loaded ONNX models may take together; 0: no such limit."
    )
    drain_seconds: float = Field(
        1.0, ge=0, description="Time for which a service that is told to end still takes requests."
    )
    keep_alive_seconds: float = Field(
        75.0, gt=0, description="Time for which a connection may be idle between two requests."
    )
    receive_seconds: float = Field(
        20.0,
        gt=0,
        description=(
            "Time in which the headers of a request must have come, and in which a body must bring "
            "1 KiB for each of these seconds, one of predictions 8 KiB."
        ),
    )
    max_connections: int = Field(
        4096,
        ge=1,
        description="Connections held by a server process; of more, idle ones are ended first.",
    )
    max_wait_seconds: float = Field(
        600.0, ge=0, description="Longest time `Prefer: wait=N` is honoured."
    )
    max_event_streams: int = Field(
        256, ge=1, description="Progress streams open at a time; the next is answered 503."
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="How log lines are written."
    )
    log_requests: Literal["none", "failures", "all"] = Field(
        "failures",
        description=(
            "Requests that get a log line: those answered 400 and above, at most 20 a second, all "
            "or none."
        ),
    )

    @field_validator("device")
    @classmethod
    def _each_once(cls, device: str) -> str:
        names = device.split(",")
        if len(set(names)) < len(names):
            raise ValueError("expected each device once")
        return device

    def host_names(self) -> list[str]:
        """Return the names that the service was given, and the address it listens on."""
        named = [name.lower() for name in self.allowed_hosts.split(",") if name]
        return [*named, self.host.lower()] if named else named

    def is_loopback(self) -> bool:
        """Tell whether nobody but this machine can reach the address that is listened on."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def resolved_database_url(self) -> str:
        """Return the database's URL, the default one spelt out."""
        return self.database_url or f"sqlite:///{self.data_dir / 'howsure.sqlite3'}"

    def resources_of_a_shard(self) -> dict[str, float]:
        """Return what a shard takes of a cluster's worker, by name."""
        pairs = [pair.split("=") for pair in self.shard_resources.split(",") if pair]
        return {name: float(amount) for name, amount in pairs}

    def resolved_artifacts_url(self) -> str:
        """Return where artifacts are kept, the default spelt out."""
        return self.artifacts_url or str(self.data_dir / "artifacts")
