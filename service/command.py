"""The entry of the command ``howsure``, which is there also where only the library is installed."""

import sys


def main() -> None:
    """Run the command; without the packages of the service, say what is missing."""
    try:
        from service.cli import main as run  # noqa: PLC0415 - has packages of `service`
    except ModuleNotFoundError as error:
        sys.exit(
            f"howsure: the command needs the package {error.name}, which is not installed. Install "
            "howsure with its extra `service`: docs/install.md."
        )
    run()
