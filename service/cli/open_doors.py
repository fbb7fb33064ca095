"""Whether a service may start as it was told to: others than this machine need a key."""

from service.cli.failure import CommandFailed
from service.operations.api_keys import find_pepper
from service.settings import Settings
from service.storage.api_keys import any_keys, live_keys
from service.storage.database import open_database


def require_keys(settings: Settings) -> None:
    """Refuse to let anybody in who can reach this address, unless that was asked for.

    Raises
    ------
    CommandFailed
        If there is no key, or if those that there are were made with another pepper.
    """
    database = open_database(settings.resolved_database_url())
    try:
        with database.reading() as session:
            was_any, good = any_keys(session), live_keys(session)
    finally:
        database.dispose()
    if not was_any and not (settings.is_loopback() or settings.allow_anonymous):
        raise CommandFailed(
            f"others can reach {settings.host}, and there is no API key: make one with "
            "`howsure keys create NAME`, or listen on 127.0.0.1, or say "
            "HOWSURE_ALLOW_ANONYMOUS=1 where something before the service keeps them out"
        )
    if good and not any(key.pepper_id == _pepper_id(settings) for key in good):
        raise CommandFailed(
            "HOWSURE_KEY_PEPPER: the API keys of this database were made with another one "
            "(without it, the file key-pepper in the data folder is taken)"
        )


def _pepper_id(settings: Settings) -> str:
    try:
        return find_pepper(settings.key_pepper, settings.data_dir).id
    except OSError as error:
        raise CommandFailed(
            f"{error.filename}: {error.strerror}; see HOWSURE_KEY_PEPPER"
        ) from error
