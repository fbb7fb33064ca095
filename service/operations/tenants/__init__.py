"""What a tenant may use, and what it does use of that."""

from service.operations.tenants.allowance import Allowance
from service.operations.tenants.limits import NO_LIMITS, TenantLimits
from service.operations.tenants.meters import UNMETERED, TenantMeter, TenantMeters

__all__ = [
    "NO_LIMITS",
    "UNMETERED",
    "Allowance",
    "TenantLimits",
    "TenantMeter",
    "TenantMeters",
]
