"""What a refused tenant is told of its quota: draft-ietf-httpapi-ratelimit-headers, 10."""

from service.errors import Quota, TooManyRequests

POLICY, REMAINING = "ratelimit-policy", "ratelimit"


def quota_headers(error: Exception) -> dict[str, str]:
    """Return the headers of a failure; none where no quota is used up."""
    if not isinstance(error, TooManyRequests) or error.quota is None:
        return {}
    quota, name = error.quota, f'"{error.quota.name}"'
    return {
        POLICY: f"{name};{_amount(quota)}",
        REMAINING: f"{name};r=0;t={error.retry_after}",
    }


def _amount(quota: Quota) -> str:
    # What is counted at a time and not in a time has no window.
    unit = f"w={quota.seconds}" if quota.seconds else 'qu="concurrent-requests"'
    return f"q={quota.amount};{unit}"
