"""`oz0 prepare-database` with addresses that cannot be; what it makes is proven with the containers."""

import pytest
from click.testing import CliRunner

from studio.cli.prepare_database import prepare_database


@pytest.mark.rule("A14")
@pytest.mark.parametrize("password", ["s3c%ret", "s3c/ret", "s3c:r/et"])
def test_a_password_that_breaks_its_address_is_not_told(password: str) -> None:
    env = {
        "DATABASE_OWNER_URL": "postgres://oz0_owner:a@127.0.0.1/oz0",
        "DATABASE_URL": "postgres://oz0_app:b@127.0.0.1/oz0",
        "OZ0_ADMIN_DATABASE_URL": f"postgres://postgres:{password}@127.0.0.1:1/postgres",
    }
    done = CliRunner().invoke(prepare_database, env=env)
    assert done.exit_code == 1
    assert "OZ0_ADMIN_DATABASE_URL cannot be read: in its password, write % as %25" in done.output
    assert "s3c" not in done.output
