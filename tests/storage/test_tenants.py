"""Tenants are made by whoever names them first."""

from sqlalchemy import func, select
from storage_threads import at_once

import models
from service.storage.database import Database
from service.storage.tenants import tenant_named


def test_a_tenant_that_several_make_at_once_is_one(database: Database) -> None:
    def make() -> object:
        with database.session() as session:
            return tenant_named(session, "new")

    assert len(set(at_once([make] * 4))) == 1
    with database.reading() as session:
        named = select(func.count()).where(models.Tenant.name == "new")
        assert session.scalar(named) == 1
