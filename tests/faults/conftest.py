"""What the drills share."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.faults.stand import Services, a_stand


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Services]:
    """Services of a module's own, for nodes that it kills."""
    with django_db_blocker.unblock(), a_stand(tmp_path_factory.mktemp("stand")) as made:
        made.use_plugin()
        yield made
