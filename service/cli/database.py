"""``howsure db``: the database's schema."""

import typer

from service.settings import Settings
from service.storage.schema import upgrade

app = typer.Typer(no_args_is_help=True, help="The database.")


@app.callback()
def _root() -> None:
    """Work on the database."""


@app.command("upgrade")
def upgrade_schema() -> None:
    """Bring the schema up to date; `howsure serve` does so itself."""
    settings = Settings()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    upgrade(settings.resolved_database_url())
    typer.echo("the schema is up to date")
