"""`oz0 audit`, in this process, on the test's own database."""

import json
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from base import db, ids
from studio import embedded
from studio.cli.audit import audit
from tenants.operations import audit as log
from tenants.operations.sign_in import first_tenant
from tenants.rules.who import Actor

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("A12")]
PAT = Actor("pat", "link, 127.0.0.1")


def oz0(*words: str) -> Result:
    return CliRunner().invoke(audit, words, catch_exceptions=False)


def some_entries(count: int) -> None:
    tenant = first_tenant(ids.new())
    for number in range(count):
        with db.write(tenant):
            log.record(PAT, "tool.listed_anew", f"tool t{number}", note="wörds\u202e =1+1")


def test_a_log_is_followed_here_and_as_an_exported_file_and_both_say_where_it_breaks(
    tmp_path: Path, database: embedded.Postgres
) -> None:
    some_entries(0)
    assert "default: no entry yet." in oz0("verify").output
    some_entries(3)
    whole = oz0("verify")
    assert whole.exit_code == 0, whole.output
    assert "default: 3 entries hold. Head 3:" in whole.output
    head = whole.output.split("Head ")[1].strip()
    file = tmp_path / "log.jsonl"
    assert oz0("export", "--out", str(file)).exit_code == 0
    said = oz0("verify", str(file), "--head", head)
    assert said.exit_code == 0, said.output
    assert "3 entries hold" in said.output
    assert oz0("verify", "--head", head).exit_code == 0, "the export added an entry, which takes nothing away"

    lines = file.read_text().splitlines()
    forged = json.loads(lines[1]) | {"note": "nothing happened"}
    file.write_text("\n".join([lines[0], json.dumps(forged), lines[2]]) + "\n")
    broken = oz0("verify", str(file), "--json")
    assert broken.exit_code == 1
    assert json.loads(broken.output) | {"head": ""} == {
        "log": str(file),
        "holds": False,
        "entries": 1,
        "head": "",
        "broken_at": 2,
        "why": "it was changed: its hash is of something else",
    }
    file.write_text("\n".join(lines[:2]) + "\n")
    assert oz0("verify", str(file)).exit_code == 0
    cut = oz0("verify", str(file), "--head", head)
    assert (cut.exit_code, "were cut off" in cut.output) == (1, True)

    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("DELETE FROM tenants_auditentry WHERE seq = 2")
    here = oz0("verify")
    assert here.exit_code == 1
    assert "default: entry 2 does not hold: it is missing" in here.output


def test_what_is_no_export_and_no_head_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text('{"seq": 1}\n')
    odd = oz0("verify", str(file))
    assert odd.exit_code == 3
    assert "line 1 is no entry" in odd.output
    assert "is no head" in oz0("verify", "--head", "yesterday").output
    some_entries(1)
    assert "there is no workspace 'other'; there are: default" in oz0("verify", "--workspace", "other").output
    printed = oz0("export", "--format", "csv")
    assert printed.output.splitlines()[0] == "seq,at,actor,how,verb,object,before,after,note,prev,hash"
