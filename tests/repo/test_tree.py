"""The tree is as its pages say, and each check sees the fault it is there for."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.repo.clocks import process_clocks
from tests.repo.layout import misplaced, overlong
from tests.repo.rooms import async_elsewhere, clients_elsewhere, transactions_elsewhere
from tests.repo.tree import ROOT, Finding, files, tell
from tests.repo.words import HOSTS, forbidden_words, passed_over
from tests.repo.writers import other_writers

type Check = Callable[[Path], list[Finding]]
# The environment without what the outer pytest or make put into it.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST", "DJANGO"))}
CHECKS: tuple[Check, ...] = (
    misplaced,
    overlong,
    other_writers,
    process_clocks,
    async_elsewhere,
    transactions_elsewhere,
    clients_elsewhere,
    forbidden_words,
    passed_over,
)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untouched copy of the tree."""
    copy = tmp_path_factory.mktemp("tree") / "copy"
    for path in files(ROOT):
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return copy


@pytest.fixture(scope="module")
def unfaulted(copied: Path) -> dict[Check, list[Finding]]:
    """What each check says of the untouched copy."""
    return {check: check(copied) for check in CHECKS}


@pytest.fixture
def add(copied: Path) -> Iterator[Callable[[str, str], None]]:
    """Put a fault into the copy: `add("jobs/helpers.py", "text")`; it is taken out again after the test."""
    before: dict[Path, bytes | None] = {}

    def put(place: str, text: str) -> None:
        path = copied / place
        before.setdefault(path, path.read_bytes() if path.exists() else None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((before[path] or b"") + text.encode())

    yield put
    for path, content in before.items():
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)


def imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts on a tree, as `make check` does."""
    found = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [found, "--no-logo", "--no-cache"],
        cwd=tree,
        env=CLEAN | {"PYTHONPATH": str(tree), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_tree_keeps_its_promises(check: Check) -> None:
    found = check(ROOT)
    assert not found, tell(found)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_copy_of_the_tree_reads_as_the_tree_does(check: Check, unfaulted: dict[Check, list[Finding]]) -> None:
    assert unfaulted[check] == check(ROOT)


def test_the_import_contracts_hold_on_an_untouched_copy(copied: Path) -> None:
    ran = imports(copied)
    assert ran.returncode == 0, ran.stdout + ran.stderr


WRONG_IMPORTS = (
    ("jobs/helpers.py", "", "- jobs.helpers"),
    ("jobs/operations/stray_up.py", "import approvals.apps", "jobs is not allowed to import approvals"),
    ("base/stray_up.py", "import tenants.apps", "base is not allowed to import tenants"),
    ("tenants/operations/stray_up.py", "import studio.urls", "tenants is not allowed to import studio"),
    ("jobs/rules/stray_model.py", "from django.db import models", "jobs.rules is not allowed to import django"),
    ("catalog/rules/stray_model.py", "import base.db", "base.db -> django"),
    ("jobs/rules/stray_clock.py", "import time", "jobs.rules is not allowed to import time"),
    ("jobs/rules/stray_dice.py", "import random", "jobs.rules is not allowed to import random"),
    ("jobs/rules/stray_up.py", "import jobs.operations", "jobs.rules is not allowed to import jobs.operations"),
    ("catalog/operations/stray_sdk.py", "import mcp.types", "catalog is not allowed to import mcp"),
    ("jobs/agent/stray_sdk.py", "import pydantic_ai", "jobs is not allowed to import pydantic_ai"),
    ("jobs/operations/stray_celery.py", "import celery", "jobs is not allowed to import celery"),
    ("catalog/operations/stray_http.py", "import httpx2", "catalog is not allowed to import httpx2"),
    ("jobs/node/stray_up.py", "import jobs.operations", "jobs.node is not allowed to import jobs.operations"),
    ("jobs/node/stray_model.py", "import catalog.models", "jobs.node is not allowed to import catalog.models"),
    ("jobs/operations/stray_tests.py", "import tests", "jobs is not allowed to import tests"),
)


@pytest.fixture(scope="module")
def contracts_said(copied: Path) -> str:
    """What the import contracts say of a tree with all the wrong imports in it, told in one run."""
    for place, text, _ in WRONG_IMPORTS:
        (copied / place).write_text(text + "\n")
    ran = imports(copied)
    for place, _, _ in WRONG_IMPORTS:
        (copied / place).unlink()
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize(("place", "said"), [(place, said) for place, _, said in WRONG_IMPORTS])
def test_a_wrong_import_breaks_a_contract(place: str, said: str, contracts_said: str) -> None:
    assert said in contracts_said, f"{place}: {contracts_said}"


@pytest.mark.parametrize(
    ("check", "place", "text", "said"),
    [
        (misplaced, "jobs/helpers.py", "", "`helpers` promises nothing"),
        (misplaced, "jobs/operations/utils.py", "", "`utils` promises nothing"),
        (misplaced, "catalog/services/listing.py", "", "`services` promises nothing"),
        (misplaced, "base/strays.py", "", "base holds"),
        (misplaced, "scripts/go.py", "", "`scripts/` is not one of the folders"),
        (misplaced, "notes.txt", "", "is not one of the files"),
        (overlong, "jobs/operations/long.py", "x = 1\n" * 501, "501 lines, the stop is 500"),
        (other_writers, "jobs/operations/strays.py", "def f(call): call.state = 1\n", "`.state =`"),
        (
            other_writers,
            "approvals/strays.py",
            "def f(c): c.objects.filter(id=1).update(seq=2, state=1)\n",
            "`update(",
        ),
        (other_writers, "jobs/operations/strays.py", "def f(c): c.update(**{'state': 1})\n", "`update("),
        (
            other_writers,
            "jobs/operations/strays.py",
            "def f(c): c.save(update_fields=['seq', 'state'])\n",
            "`save(",
        ),
        (other_writers, "jobs/operations/strays.py", "def f(c): setattr(c, 'state', 1)\n", "`setattr("),
        (
            other_writers,
            "jobs/operations/strays.py",
            "SQL = 'UPDATE jobs_call\\n SET seq = 1, state = %s'\n",
            "`SET state`",
        ),
        (
            process_clocks,
            "jobs/operations/strays.py",
            "import time\nAT = time.time()\n",
            "`time.time` is this process's clock",
        ),
        (
            process_clocks,
            "jobs/operations/strays.py",
            "from time import monotonic as m\nAT = m()\n",
            "`time.monotonic`",
        ),
        (
            process_clocks,
            "jobs/operations/strays.py",
            "from datetime import datetime\nAT = datetime.now(None)\n",
            "`datetime.datetime.now`",
        ),
        (
            process_clocks,
            "jobs/operations/strays.py",
            "from django.utils import timezone\nAT = timezone.now\n",
            "`django.utils.timezone.now`",
        ),
        (
            process_clocks,
            "jobs/rules/strays.py",
            "from uuid import uuid4\nID = uuid4()\n",
            "`uuid.uuid4` throws dice",
        ),
        (
            process_clocks,
            "jobs/rules/strays.py",
            "import random\nX = random.random()\n",
            "`random.random` throws dice",
        ),
        (
            process_clocks,
            "jobs/operations/strays.py",
            "from base import ids\nID = ids.new()\n",
            "`base.ids.new` throws dice",
        ),
        (process_clocks, "jobs/queries/strays.py", "SQL = 'WHERE due_at < now()'\n", "use oz0_now()"),
        (
            process_clocks,
            "jobs/models/strays.py",
            "def f(field): field(auto_now_add=True)\n",
            "`auto_now_add`",
        ),
        (async_elsewhere, "jobs/operations/strays.py", "async def f(): pass\n", "`async def f` belongs into"),
        (
            transactions_elsewhere,
            "jobs/operations/strays.py",
            "from django.db import transaction\nWITH = transaction.atomic()\n",
            "`django.db.transaction.atomic`",
        ),
        (
            clients_elsewhere,
            "catalog/operations/strays.py",
            "import urllib.request\nGET = urllib.request.urlopen\n",
            "`urllib.request.urlopen`",
        ),
        (forbidden_words, "docs/strays.md", f"see https://{HOSTS[0]}/project/\n", "names a package registry"),
        (forbidden_words, "docs/strays.md", "in /" + "root/data\n", "is a path of one machine"),
        (
            passed_over,
            "tests/repo/test_strays.py",
            "import pytest\n@pytest.mark.skip\ndef test_x(): pass\n",
            "proves nothing",
        ),
    ],
)
def test_each_check_sees_its_fault(
    check: Check,
    place: str,
    text: str,
    said: str,
    copied: Path,
    unfaulted: dict[Check, list[Finding]],
    add: Callable[[str, str], None],
) -> None:
    add(place, text)
    found = [finding for finding in check(copied) if finding not in unfaulted[check]]
    assert [finding.place for finding in found] == [place], tell(found)
    assert said in found[0].what


def test_a_clock_named_in_words_is_no_clock(copied: Path, add: Callable[[str, str], None]) -> None:
    add("jobs/operations/strays.py", '"""Uses oz0_now(), never now()."""\nSQL = "due_at < oz0_now()"\n')
    assert process_clocks(copied) == []


def commands_of_make_check() -> list[str]:
    """What `make check` would run here, a command a line."""
    return subprocess.run(
        ["make", "-n", "check", f"VENV={sys.prefix}"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize(
    "step",
    [
        r"/ruff format --check \.$",
        r"/ruff check \.$",
        r"/lint-imports\b",
        r"/mypy$",
        r"manage\.py makemigrations --check\b",
        r'-m pytest -q -n 3 --dist worksteal -m "not browser and not faults" .*tests/repo\b',
    ],
)
def test_make_check_runs_every_step_on_the_whole_tree(step: str) -> None:
    assert any(re.search(step, command) for command in commands_of_make_check())


@pytest.mark.parametrize(
    ("step", "place", "text", "said"),
    [
        ("lint-imports", "jobs/helpers.py", "", "- jobs.helpers"),
        (
            "lint-imports",
            "jobs/operations/strays.py",
            "import approvals.apps",
            "jobs is not allowed to import approvals",
        ),
        (
            "pytest",
            "jobs/operations/strays.py",
            "def f(call): call.state = 1",
            "`.state =` writes a state outside the mover",
        ),
        ("pytest", "jobs/operations/strays.py", "import time; AT = time.time()", "`time.time` is this process's clock"),
    ],
)
def test_make_check_fails_on_a_fault(
    step: str, place: str, text: str, said: str, copied: Path, add: Callable[[str, str], None]
) -> None:
    add(place, text)
    [command] = [command for command in commands_of_make_check() if step in command]
    if step == "pytest":  # of the suite only the test of the tree: it stands in for the run that this test is part of
        command = command.replace(" tests/rules tests/repo tests/operations tests/pages", " tests/repo/test_tree.py")
        command += " -n 0 --noconftest -p no:cacheprovider -k keeps_its_promises"
    ran = subprocess.run(command, shell=True, cwd=copied, env=CLEAN, capture_output=True, text=True, timeout=300)
    assert ran.returncode != 0
    assert said in ran.stdout
