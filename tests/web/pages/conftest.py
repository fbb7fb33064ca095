"""A reader of pages, for the shared service or one of a module's own."""

from collections.abc import Iterator

import pytest
from keyed_service import KeyedService
from page_visitor import Visitor
from running_service import Service


@pytest.fixture
def visitor(service: KeyedService | Service) -> Iterator[Visitor]:
    visitor = Visitor(service)
    yield visitor
    visitor.client.close()
