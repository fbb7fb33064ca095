"""The declarative base: how constraints are named and which SQL type a Python type takes."""

from datetime import datetime

from sqlalchemy import Double, MetaData
from sqlalchemy.orm import DeclarativeBase

from models.utc_datetime import UtcDateTime

NAMING_CONVENTION = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class Base(DeclarativeBase):
    """Base of every table. A child names its parent by tenant and key, never by key alone."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = {datetime: UtcDateTime(), float: Double()}  # noqa: RUF012  (SQLAlchemy's own protocol)
