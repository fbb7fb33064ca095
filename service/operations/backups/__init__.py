"""Backups: one consistent cut of all rows and files, as a folder that any database restores."""

from service.operations.backups.back_up import back_up
from service.operations.backups.manifest import Manifest
from service.operations.backups.restore import restore

__all__ = ["Manifest", "back_up", "restore"]
