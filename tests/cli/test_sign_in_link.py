"""`oz0 sign-in-link`, in this process, on the test's own database."""

import re

import pytest
from click.testing import CliRunner
from django.conf import LazySettings

from studio.cli.sign_in_link import sign_in_link

pytestmark = pytest.mark.usefixtures("database")


def test_the_link_is_below_the_address_that_the_studio_is_served_at_or_the_one_named(settings: LazySettings) -> None:
    settings.OZ0_URL = "http://127.0.0.1:8765"

    def link(*words: str) -> str:
        return CliRunner().invoke(sign_in_link, words, catch_exceptions=False).output

    assert re.fullmatch(r"http://127\.0\.0\.1:8765/sign-in/link/[\w-]{40,}/\n", link())
    assert link("--address", "https://studio.example.com/").startswith("https://studio.example.com/sign-in/link/")


def test_somebody_unknown_is_refused_by_name() -> None:
    done = CliRunner().invoke(sign_in_link, ["--user", "nobody"])
    assert (done.exit_code, "nobody" in done.output) == (1, True)
