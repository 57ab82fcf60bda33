"""`oz0 catalog`, in this process, on the test's own database."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from base import db, ids
from base.folders import keep
from catalog.models import LintReport, Tool
from catalog.operations.linting import lint_tool
from catalog.operations.listings import not_measured
from catalog.operations.plugins import register
from studio.cli.catalog import catalog
from tenants.operations.sign_in import first_tenant
from tenants.rules.who import SYSTEM
from tests.catalogs import entries, lists

pytestmark = pytest.mark.usefixtures("database")
READ = {"readOnlyHint": True, "destructiveHint": False}
KEYLESS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}


def entry(name: str, annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "inputSchema": {"type": "object"},
        "description": f"It is {name}.",
        "annotations": annotations,
    }


def oz0_catalog(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(catalog, list(words), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def shop(tmp_path: Path) -> UUID:
    """A tool with a read, a write that promises nothing, and a function that says nothing."""
    tenant = first_tenant(ids.new())
    manifest = 'name: shop\nversion: "1"\ntools: [{id: shop, mcp: [python, -m, shop]}]\n'
    keep({"oz0-plugin.yaml": manifest.encode()}, tmp_path / "shop")
    register(tenant=tenant, folder=tmp_path / "shop", home=tmp_path / "home", actor=SYSTEM)
    lists(tenant, "shop", entries(entry("look", READ), entry("note", KEYLESS), entry("wipe", {})))
    with db.read(tenant):
        return Tool.objects.get().pk


@pytest.mark.rule("T1")
@pytest.mark.rule("C4")
def test_each_function_is_there_with_its_kind_its_tokens_and_what_to_mend(shop: UUID) -> None:
    """CASES C14. What is told is what the page of findings keeps."""
    assert lint_tool(tenant=first_tenant(ids.new()), tool_id=shop)
    shown = {line.split()[0]: line.split() for line in oz0_catalog().output.splitlines() if line.startswith("shop.")}
    assert {name: (line[1], line[3]) for name, line in shown.items()} == {
        "shop.look": ("read", "-"),
        "shop.note": ("write", "tools.key"),
        "shop.wipe": ("undeclared", "tools.undeclared"),
    }
    assert all(int(line[2]) > 0 for line in shown.values())
    told = json.loads(oz0_catalog("--json").stdout)["tools"]["shop"]
    assert told["listed"]
    assert told["linted"]
    assert told["tokens"] == sum(one["tokens"] for one in told["functions"])
    (finding,) = next(one["findings"] for one in told["functions"] if one["name"] == "wipe")
    assert "ToolAnnotations" in finding["fix"]


def test_a_listing_that_was_not_linted_yet_is_told_as_that(shop: UUID) -> None:
    with db.write(first_tenant(ids.new())):
        LintReport.objects.all().delete()
    assert "not linted yet" in oz0_catalog().output
    assert not json.loads(oz0_catalog("--json").stdout)["tools"]["shop"]["linted"]


def test_a_tool_that_is_not_there_is_told_with_those_that_are(shop: UUID) -> None:
    assert "there is no tool stop; there are: shop" in oz0_catalog("--tool", "stop", code=1).output
    assert json.loads(oz0_catalog("--tool", "shop", "--json").stdout)["tools"].keys() == {"shop"}


def test_a_tool_that_could_not_be_listed_says_why(shop: UUID) -> None:
    tenant = first_tenant(ids.new())
    not_measured(tenant=tenant, tool_id=shop, why="It ended at once.")
    assert "listed: It ended at once." in oz0_catalog().output
