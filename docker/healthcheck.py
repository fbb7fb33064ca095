"""Exit with 0 if the process of this container is ready: `howsure serve`, or `howsure worker`."""

import os
import sys
import urllib.request

PORTS = (os.environ.get("HOWSURE_PORT", "8000"), os.environ.get("HOWSURE_WORKER_PORT", "8001"))
TIMEOUT_SECONDS = 4.0


def is_ready(port: str) -> bool:
    """Return whether a process of this container listens on the port and is ready."""
    address = f"http://127.0.0.1:{port}/readyz"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if any(map(is_ready, PORTS)) else 1)
