"""``python -m service`` is ``howsure``."""

from service.command import main

main()
