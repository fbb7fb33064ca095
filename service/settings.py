"""Settings: ``HOWSURE_*`` environment variables or a ``.env`` file, each with a working default."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from dotenv import load_dotenv
from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024**2
GIBIBYTE = 1024**3
# Examples of earlier versions contained these.
PUBLISHED_PEPPERS = ("known-to-everybody", "CHANGE-ME-CHANGE-ME")


def read_settings(**options: object) -> "Settings":
    """Return the settings; options override variables, and variables the lines of `.env`.

    Lines for libraries count as well, such as AWS_ACCESS_KEY_ID.
    """
    load_dotenv(".env")
    return Settings(**options)  # type: ignore[arg-type]  # pydantic checks them


class Settings(BaseSettings):
    """All settings; the composition roots read them once."""

    model_config = SettingsConfigDict(
        env_prefix="HOWSURE_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    host: str = "127.0.0.1"
    """Address the service listens on."""
    allow_anonymous: bool = False
    """Start on an address that other machines can reach without any API key."""
    key_pepper: str = Field("", repr=False, pattern=r"^(.{16,})?$")
    """Secret for the digests of API keys, 16 characters or more, the same for all
    processes; empty: the file key-pepper in the data folder."""
    max_tenant_requests_per_second: int = Field(1000, ge=0)
    """Requests per second of a tenant with keys; 0: no limit."""
    max_tenant_rows_per_minute: int = Field(1_000_000, ge=0)
    """Rows per minute of a tenant with keys; 0: no limit."""
    max_tenant_stored_bytes: int = Field(100 * GIBIBYTE, ge=0)
    """Stored bytes of a tenant with keys; 0: no limit."""
    max_tenant_jobs: int = Field(100, ge=0)
    """Queued or running jobs of a tenant with keys; 0: no limit."""
    allowed_hosts: str = Field("", pattern=r"^(\*|[A-Za-z0-9._\[\]:-]+(,[A-Za-z0-9._\[\]:-]+)*)?$")
    """Host names of the service besides those of this machine, separated by commas; `*`, or
    empty with API keys: any name."""
    port: int = Field(8000, ge=0, le=65535)
    """Port; 0 picks a free one."""
    worker_port: int = Field(8001, ge=0, le=65535)
    """Port for health and metrics of `howsure worker`."""
    data_dir: Path = Path("howsure-data")
    """Folder for the database, the artifacts and the uploads."""
    database_url: str = ""
    """`sqlite:///…` or `postgresql+psycopg://…`; empty: SQLite in the data folder."""
    artifacts_url: str = ""
    """Folder or object store of the artifacts: `s3://bucket/folder`, `gs://…`, `az://…`;
    empty: a folder in the data folder."""
    orphan_seconds: float = Field(3600.0, ge=1.0)
    """Unreferenced files are deleted, and uploads count as dead, after this time without a
    write."""
    scheduler: str = Field("", pattern=r"^((tcp|tls|ws|wss)://\S+)?$")
    """Dask scheduler, such as `tcp://host:8786`, whose workers run the rows of
    calibrations; empty: this process runs them."""
    shard_resources: str = Field("", pattern=r"^(\w+=[0-9]+(\.[0-9]+)?(,\w+=[0-9]+(\.[0-9]+)?)*)?$")
    """Resources that a shard takes of a Dask worker, such as `GPU=1`; empty: none."""
    keep_inputs: Literal["none", "some", "all"] = "some"
    """Calibration samples kept after a calibration; `some`: at most 1,000."""
    device: str = Field(
        "auto", pattern=r"^(auto|cpu|cuda|cuda:(0|[1-9][0-9]{0,3})(,cuda:(0|[1-9][0-9]{0,3}))*)$"
    )
    """`auto` (the best that loads), `cpu`, `cuda`, `cuda:N`, or several: `cuda:0,cuda:1`."""
    threads: int = Field(0, ge=0)
    """Threads of one ONNX session; 0: as many as the process may use."""
    max_processes: int = Field(4, ge=1, le=256)
    """ONNX models kept loaded, each in a child process."""
    workers: int = Field(1, ge=0, le=64)
    """Jobs that this process runs at a time; 0 runs none."""
    lease_seconds: float = Field(30.0, ge=1.0)
    """Another worker takes a job over after this time without a sign."""
    load_timeout_seconds: float = Field(120.0, gt=0)
    """Maximum time for a model to load and run its trial rows."""
    trial_timeout_seconds: float = Field(20.0, gt=0)
    """The same for a small uploaded model; each 16 MiB of a larger one add a second, up to
    `HOWSURE_LOAD_TIMEOUT_SECONDS`."""
    run_timeout_seconds: float = Field(60.0, gt=0)
    """Maximum time for an ONNX model to run one batch."""
    read_timeout_seconds: float = Field(300.0, gt=0)
    """Maximum time to open the sets of an upload, or read a shard."""
    fit_timeout_seconds: float = Field(3600.0, gt=0)
    """Maximum time to fit a calibration to its records."""
    allow_unsandboxed: bool = False
    """Run ONNX models and read sets even if the kernel cannot sandbox their processes
    because it lacks Landlock or seccomp."""
    max_process_memory: int = Field(0, ge=0)
    """Bytes that a child process may use for an ONNX model on the CPU; 0: half the memory of the
    machine or of the cgroup."""
    max_model_bytes: int = Field(2 * GIBIBYTE, gt=0)
    """Largest ONNX file."""
    max_model_data_bytes: int = Field(16 * GIBIBYTE, gt=0)
    """Largest companion file with external weights."""
    max_dataset_bytes: int = Field(64 * GIBIBYTE, gt=0)
    """Largest calibration or evaluation file."""
    max_inflated_bytes: int = Field(64 * GIBIBYTE, gt=0)
    """Maximum bytes of an unpacked and decoded set."""
    max_samples: int = Field(10_000_000, gt=0)
    """Maximum samples in a data file."""
    max_classes: int = Field(100_000, gt=1, le=2**24)
    """Maximum number of classes of an ONNX model."""
    max_model_nodes: int = Field(50_000, gt=0, le=2**24)
    """Maximum nodes of a model, its functions per call."""
    max_row_passes: int = Field(20_000_000, gt=0)
    """Maximum rows that measures send through a model per set."""
    job_seconds: float = Field(21600.0, gt=0)
    """Maximum time for the rows of a set in a job. A job also ends ten minutes after ten
    times what its model's trial lets expect."""
    max_predict_bytes: int = Field(32 * MEBIBYTE, gt=0)
    """Largest /predict body."""
    max_predict_rows: int = Field(10_000, gt=0)
    """Maximum rows in a /predict request."""
    predict_timeout_seconds: float = Field(60.0, gt=0)
    """Maximum time from a prediction request to its response."""
    predict_queue_rows: int = Field(4096, ge=1)
    """Rows that may wait for their models; beyond that: 429."""
    predict_queue_bytes: int = Field(256 * MEBIBYTE, gt=0)
    """Bytes of bodies that may wait or run, and again that may be in transfer."""
    max_batch_rows: int = Field(128, ge=1, le=65536)
    """Maximum rows in one run of an ONNX model."""
    max_model_memory: int = Field(0, ge=0)
    """Bytes that all loaded ONNX models may use together; 0: no limit."""
    drain_seconds: float = Field(1.0, ge=0)
    """Time for which a stopping service still accepts requests."""
    keep_alive_seconds: float = Field(75.0, gt=0)
    """Maximum idle time of a connection between two requests."""
    receive_seconds: float = Field(20.0, gt=0)
    """Maximum time to receive request headers; in each such period a body must bring 1 KiB
    per second, that of a prediction 8 KiB."""
    max_connections: int = Field(4096, ge=1)
    """Connections per server process; beyond that idle ones are closed."""
    max_wait_seconds: float = Field(600.0, ge=0)
    """Maximum wait for `Prefer: wait=N`."""
    log_format: Literal["console", "json"] = "console"
    """Format of log lines."""
    log_requests: Literal["none", "failures", "all"] = "failures"
    """Requests with a log line; `failures`: responses of 400 and above, at most 20 a second."""

    @field_validator("key_pepper")
    @classmethod
    def _is_secret(cls, given: str) -> str:
        if given in PUBLISHED_PEPPERS:
            raise ValueError("this value is published: choose 32 random characters or more")
        return given

    @field_validator("device")
    @classmethod
    def _each_once(cls, device: str) -> str:
        names = device.split(",")
        if len(set(names)) < len(names):
            raise ValueError("expected each device once")
        return device

    def host_names(self) -> list[str]:
        """Return the configured host names and the listening address; empty without names."""
        named = [name.lower() for name in self.allowed_hosts.split(",") if name]
        return [*named, self.host.lower()] if named else named

    def is_loopback(self) -> bool:
        """Tell whether only this machine can reach the listening address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def resolved_database_url(self) -> str:
        """Return the URL of the database, by default SQLite in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'howsure.sqlite3'}"

    def resources_of_a_shard(self) -> dict[str, float]:
        """Return the resources that a shard takes of a Dask worker, by name."""
        pairs = [pair.split("=") for pair in self.shard_resources.split(",") if pair]
        return {name: float(amount) for name, amount in pairs}

    def tenant_limits(self) -> dict[str, int]:
        """Return the default limits of tenants with keys, by the fields of `TenantLimits`."""
        return {
            "requests_per_second": self.max_tenant_requests_per_second,
            "rows_per_minute": self.max_tenant_rows_per_minute,
            "stored_bytes": self.max_tenant_stored_bytes,
            "jobs": self.max_tenant_jobs,
        }

    def resolved_artifacts_url(self) -> str:
        """Return the folder or URL of the artifacts, by default in the data folder."""
        return self.artifacts_url or str(self.data_dir / "artifacts")
