"""Several server processes that answer on one port, and the one that looks after them."""

from service.cli.processes.supervisor import Supervisor

__all__ = ["Supervisor"]
