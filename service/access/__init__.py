"""Authentication, authorisation, rate limits, quotas and the audit log."""
