"""What a tenant may use."""

from dataclasses import asdict, dataclass

from service.storage.tenants import OwnLimits


@dataclass(frozen=True)
class TenantLimits:
    """Limits of a tenant; 0 is none.

    ``jobs`` counts calibrations and evaluations that are queued or running.
    """

    requests_per_second: int = 0
    rows_per_minute: int = 0
    stored_bytes: int = 0
    jobs: int = 0

    def but(self, own: OwnLimits) -> "TenantLimits":
        """Return the limits of a tenant that has some of its own."""
        chosen = {name: value for name, value in asdict(own).items() if value is not None}
        return TenantLimits(**asdict(self) | chosen)


NO_LIMITS = TenantLimits()
