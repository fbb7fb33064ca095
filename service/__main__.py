"""``python -m service`` is ``howsure``."""

from service.cli import main

main()
