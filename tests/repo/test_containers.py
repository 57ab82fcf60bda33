"""The container files are true to the product. That their commands work is in `tests/faults/test_containers.py`."""

import re
import subprocess
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement

from studio.cli import main
from tests.repo.containers import filled_in, image_command, ours, services, steps
from tests.repo.docs_pages import listed_settings
from tests.repo.tree import ROOT


def test_compose_runs_web_node_and_the_three_services_they_stand_on() -> None:
    assert set(services(ROOT)) == {"web", "node", "migrate", "prepare", "postgres", "valkey", "rabbitmq"}
    assert set(ours(ROOT)) == {"web", "node", "migrate", "prepare"}


def test_every_variable_in_compose_is_described_for_the_operator() -> None:
    named = {name for container in ours(ROOT).values() for name in container.variables}
    assert named | filled_in(ROOT) <= listed_settings(ROOT)


@pytest.mark.parametrize("name", sorted(ours(ROOT)))
def test_every_command_in_compose_is_one_of_the_products_with_options_it_has(name: str) -> None:
    program, command, *words = ours(ROOT)[name].command
    found = main.get_command(click.Context(main), command)
    assert (program, found is not None) == ("oz0", True)
    assert found is not None
    found.make_context(command, list(words))


def test_the_image_serves_pages_unless_told_otherwise() -> None:
    assert image_command(ROOT) == ours(ROOT)["web"].command


def test_only_this_machine_reaches_the_pages_and_no_service_of_theirs_is_published() -> None:
    published = {name: service["ports"] for name, service in services(ROOT).items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:${OZ0_PORT:-8000}:8000"]}


def test_the_app_is_never_given_the_owners_or_the_admins_password() -> None:
    for name in ("web", "node"):
        said = " ".join(ours(ROOT)[name].variables.values())
        assert "OWNER" not in said
        assert "ADMIN" not in said


def test_a_node_is_given_its_whole_drain_before_it_is_killed() -> None:
    drain = re.search(r"OZ0_DRAIN:-(\d+)", ours(ROOT)["node"].variables["OZ0_DRAIN"])
    assert drain
    assert int(services(ROOT)["node"]["stop_grace_period"].removesuffix("s")) > int(drain[1]) + 12


def test_the_image_installs_the_versions_of_the_lock(tmp_path: Path) -> None:
    """Its second step, run here: what it writes are plain pins that pip takes as constraints."""
    [step] = [step for step in steps(ROOT, "RUN") if step.startswith("sed ")]
    target = tmp_path / "versions.txt"
    subprocess.run(["sh", "-c", step.replace("/tmp/versions.txt", f"'{target}'")], cwd=ROOT, check=True, timeout=60)
    pins = [Requirement(line) for line in target.read_text().splitlines() if line and not line.startswith("#")]
    locked = re.findall(r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert sorted(pin.name for pin in pins) == sorted(locked)
    assert "--constraint /tmp/versions.txt ." in " ".join(steps(ROOT, "RUN"))
