"""``howsure db``: the database's schema."""

import typer

from service.cli.given_settings import given_settings, prepare

app = typer.Typer(no_args_is_help=True, help="The database.")


@app.callback()
def _root() -> None:
    """Work on the database."""


@app.command("upgrade")
def upgrade_schema() -> None:
    """Bring the schema up to date; `howsure serve` does so itself."""
    prepare(given_settings())
    typer.echo("the schema is up to date")
