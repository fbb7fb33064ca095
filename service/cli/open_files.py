"""Room for connections among the files that a process may have open."""

import resource

import structlog

# For the database, models, uploads and what libraries open.
OWN_FILES = 256
LEAST_CONNECTIONS = 16

log = structlog.get_logger(__name__)


def room_for_connections(wanted: int) -> int:
    """Return how many of so many connections can be open, once as many may be as is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = wanted + OWN_FILES
    if hard != resource.RLIM_INFINITY:
        allowed = min(allowed, hard)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = allowed
    room = max(LEAST_CONNECTIONS, min(wanted, soft - OWN_FILES))
    if room < wanted:
        log.warning("fewer_connections", wanted=wanted, held=room, open_files=soft)
    return room
