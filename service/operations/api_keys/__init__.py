"""API keys: how they are written, made and known again."""

from service.operations.api_keys.caller import ADMIN, PREDICT, READ, SCOPES, WRITE, Caller
from service.operations.api_keys.doorkeeper import Doorkeeper
from service.operations.api_keys.key_ring import KeyRing, require_scope
from service.operations.api_keys.pepper import Pepper, find_pepper, make_pepper

__all__ = [
    "ADMIN",
    "PREDICT",
    "READ",
    "SCOPES",
    "WRITE",
    "Caller",
    "Doorkeeper",
    "KeyRing",
    "Pepper",
    "find_pepper",
    "make_pepper",
    "require_scope",
]
