"""A statement for each constraint of our models that breaks it, on the rows of `a_full_world`."""

import json
from typing import Final, LiteralString

from base import ids


def change(table: str, where: str, **columns: object) -> LiteralString:
    """SQL that changes the first such row."""
    sets = ", ".join(f"{name} = {value}" for name, value in columns.items())
    return f"UPDATE {table} SET {sets} WHERE id = (SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"  # type: ignore[return-value]


def copy(table: str, where: str = "true", **columns: object) -> LiteralString:
    """SQL that writes the first such row a second time, with a new id and these columns."""
    other = json.dumps({"id": str(ids.new()), **columns})
    return (
        f"INSERT INTO {table} SELECT (jsonb_populate_record(r, '{other}')).* FROM {table} r "  # type: ignore[return-value]
        f"WHERE {where} ORDER BY r.id LIMIT 1"
    )


RUNS: Final = "standing = 'running'"
LIVE: Final = "standing = 'live'"
OLD: Final = "019a0000-0000-7000-8000-000000000001"  # an operation's id, of a known moment
# Every constraint of our models, and a statement that breaks it.
BREAKS: Final[dict[str, LiteralString]] = {
    "membership_once": copy("tenants_membership"),
    "server_log_once": copy("catalog_serverlog"),
    "membership_role": change("tenants_membership", "true", role="'owner'"),
    "api_token_of_nobody_only_calls": change("tenants_apitoken", "created_by_id IS NULL", scopes="'[\"read\"]'"),
    "invitation_role": change("tenants_invitation", "true", role="'owner'"),
    "invitation_accepted_or_revoked": change("tenants_invitation", "true", accepted_at="now()"),
    "identity_once": "INSERT INTO tenants_identity (user_id, issuer, subject, made_at) "
    "SELECT user_id, issuer, subject, made_at FROM tenants_identity LIMIT 1",
    "secret_once": copy("tenants_secret"),
    "audit_seq_once": copy("tenants_auditentry"),
    "channel_name_once": copy("approvals_channel"),
    "channel_way": change("approvals_channel", "true", way="'pigeon'"),
    "channel_removed_is_off": change("approvals_channel", "true", removed_at="now()"),
    "delivery_state": change("approvals_delivery", "standing = 'carried'", standing="'perhaps'"),
    "delivery_once": copy("approvals_delivery"),
    "delivery_due_until_ended": change("approvals_delivery", "standing = 'due'", due_at="NULL"),
    "plugin_once": copy("catalog_plugin"),
    "plugin_version_once": copy("catalog_pluginversion", stage="old"),
    "plugin_one_current": copy("catalog_pluginversion", digest="another"),
    "plugin_version_stage": change("catalog_pluginversion", "true", stage="'best'"),
    "arrival_came": copy("catalog_arrival", came="by itself"),
    "lint_finding_once": copy("catalog_lintfinding"),
    "lint_finding_severity": change("catalog_lintfinding", "true", severity="'hint'"),
    "tool_once": copy("catalog_tool"),
    "tool_transport": change("catalog_tool", "true", transport="'post'"),
    "tool_timeout_range": change("catalog_tool", "true", timeout=3601),
    "tool_sandboxed_or_not": change("catalog_tool", "true", sandbox="'{}'"),
    "tool_positive": change("catalog_tool", "true", slots=0),
    "connection_once": copy("catalog_connection"),
    "connection_credential": change("catalog_connection", "true", credential="'password'"),
    "connection_names_its_header": change("catalog_connection", "true", header="'X-Key'"),
    "sign_in_standing": change("catalog_signin", "true", standing="'perhaps'"),
    "sign_in_has_a_grant": change("catalog_signin", "true", standing="'in'"),
    "listing_one_current": copy("catalog_listing"),
    "function_once": copy("catalog_function"),
    "agent_once": copy("catalog_agent"),
    "skill_once": copy("catalog_skill"),
    "policy_number_once": copy("catalog_policyversion"),
    "switch_once": copy("catalog_killswitch"),
    "switch_target_of_scope": change("catalog_killswitch", "true", scope="'tenant'"),
    "switch_mode": change("catalog_killswitch", "true", mode="'harder'"),
    "switch_scope": change("catalog_killswitch", "true", scope="'world'"),
    "node_state": change("jobs_node", "true", state="'zombie'"),
    "job_state": change("jobs_job", "true", state="'paused'"),
    "job_starter": change(
        "jobs_job", "routine_id IS NULL AND hook_id IS NULL AND start_token_id IS NULL", starter="'cat'"
    ),
    "job_ended_when_final": change("jobs_job", "state = 'running'", state="'FAILED'"),
    "job_cancelling_ends_as": change("jobs_job", "state = 'running'", state="'cancelling'"),
    "job_turn_due_while_live": change("jobs_job", "state = 'waiting'", turn_due_at="now()"),
    "job_on_unknown": change("jobs_job", "true", on_unknown="'guess'"),
    "job_tainted_by_something": change("jobs_job", "tainted_at IS NULL", tainted_at="now()"),
    "job_driver": change("jobs_job", "driver = 'model'", driver="'cat'"),
    "job_of_a_client_has_its_token": change("jobs_job", "driver = 'outside'", idle_at="NULL"),
    "job_one_open_of_a_client": change("jobs_job", "client_session <> ''", client_session="''"),
    "job_started_once": "UPDATE jobs_job SET start_key = 'form 1'",
    "job_started_through": change("jobs_job", "routine_id IS NOT NULL", starter="'event'"),
    "login_answered_by_someone": "UPDATE tenants_loginask SET person_id = null",
    "login_taken_when_allowed": "UPDATE tenants_loginask SET taken_at = now(), allowed = false",
    "routine_name_once": copy("jobs_routine"),
    "routine_missed": change("jobs_routine", "true", missed="'forget'"),
    "routine_overlap": change("jobs_routine", "true", overlap="'wait'"),
    "routine_standing": change("jobs_routine", "true", standing="'asleep'", due_at="null"),
    "routine_due_while_on": change("jobs_routine", "true", standing="'paused'"),
    "routine_run_once": copy("jobs_routinerun"),
    "routine_run_came": change("jobs_routinerun", "true", came="'perhaps'", job_id="null"),
    "routine_run_has_its_job": change("jobs_routinerun", "true", job_id="null"),
    "hook_name_once": copy("jobs_hook"),
    "hook_signing": change("jobs_hook", "true", signing="'wax'"),
    "hook_standing": change("jobs_hook", "true", standing="'asleep'"),
    "hook_delivery_once": copy("jobs_hookdelivery"),
    "hook_delivery_came": change("jobs_hookdelivery", "true", came="'perhaps'", job_id="null"),
    "hook_delivery_has_its_job": change("jobs_hookdelivery", "true", job_id="null"),
    "turn_once": copy("jobs_turn", "state = 'answered'"),
    "turn_one_open": copy("jobs_turn", "state = 'asked'", number=90),
    "turn_state": change("jobs_turn", "true", state="'heard'"),
    "turn_ended_when_closed": change("jobs_turn", "state = 'answered'", ended_at="null"),
    "session_once": copy("jobs_session", "state = 'running'", state="ended", ended_at="2026-01-01"),
    "session_one_open": copy("jobs_session", "state = 'running'", number=2),
    "session_state": change("jobs_session", "state = 'running'", state="'paused'"),
    "session_ended_when_final": change("jobs_session", "state = 'running'", state="'ended'"),
    "session_due_while_starting": change("jobs_session", "state = 'running'", due_at="now()"),
    "session_runs_somewhere": change("jobs_session", "state = 'running'", token_id="null"),
    "call_of_an_incarnation": change("jobs_call", "session_id IS NOT NULL", incarnation="0"),
    "call_activity_once": copy("jobs_call"),
    "call_state": change("jobs_call", "state = 'running'", state="'paused'"),
    "call_asked_again_once": "UPDATE jobs_call SET again_of_id = (SELECT id FROM jobs_call ORDER BY id LIMIT 1)",
    "call_effect": change("jobs_call", "true", effect="'perhaps'"),
    "call_ended_when_final": change("jobs_call", "state = 'running'", state="'SUCCEEDED'"),
    "call_due_when_claimable": change("jobs_call", "state = 'queued'", due_at="null"),
    "attempt_number_once": copy("jobs_attempt", "state = 'answered'"),
    "attempt_one_open": copy("jobs_attempt", "state = 'open'", number=2),
    "attempt_state": change("jobs_attempt", "state = 'answered'", state="'won'"),
    "attempt_ended_when_closed": change("jobs_attempt", "state = 'open'", state="'answered'"),
    "attempt_limit_after_start": change("jobs_attempt", "true", limit_at="started_at"),
    "attempt_token_with_progress": change("jobs_attempt", "true", resume_token="'t1'"),
    "attempt_resumed_or_started_over": change(
        "jobs_attempt", "true", resumed_from="1", started_over_because="'no_token'"
    ),
    "attempt_stop_says_why": change("jobs_attempt", "true", stop_requested_at="now()"),
    "hold_one_open": copy("jobs_hold", "state = 'open'"),
    "hold_state": change("jobs_hold", "state = 'open'", state="'denied'", closed_at="now()"),
    "hold_kind": change("jobs_hold", "true", kind="'quiz'", expires_at="null"),
    "hold_closed_when_not_open": change("jobs_hold", "state = 'open'", state="'withdrawn'"),
    "hold_answered_by_someone": change("jobs_hold", "state = 'answered'", answered_by_id="null"),
    "hold_questions_never_expire": change("jobs_hold", "state = 'open'", kind="'unknown'"),
    "event_seq_once": copy("jobs_event"),
    "exporter_one": copy("jobs_exporter"),
    "decision_once": copy("approvals_decision"),
    "budget_name_once": copy("budgets_project", "agent = ''"),
    "budget_agent_once": copy("budgets_project", "agent <> ''"),
    "budget_unconfirmed": change("budgets_project", "true", unconfirmed="'kept'"),
    "limit_once": copy("budgets_limit"),
    "limit_period": change("budgets_limit", "true", period="'week'"),
    "limit_mode": change("budgets_limit", "true", mode="'beg'"),
    "limit_not_negative": change("budgets_limit", "true", amount=-1),
    "tally_once": copy("budgets_tally"),
    "tally_period": change("budgets_tally", "true", period="'week'"),
    "tally_not_negative": change("budgets_tally", "true", in_doubt=-1),
    "budget_key_scope": change("budgets_key", "true", scope="'some'"),
    "budget_key_or_pair": change("budgets_key", "refresh_hash IS NULL", access_until="now()"),
    "operation_standing": change("budgets_operation", RUNS, standing="'paused'", ended_at="now()"),
    "operation_size": copy("budgets_operation", RUNS, id=OLD, expires_at="2025-10-21T05:03:11.360Z", size=33),
    "operation_lives_a_day": change("budgets_operation", RUNS, expires_at="expires_at + interval '1 millisecond'"),
    "operation_ended_when_not_running": change("budgets_operation", RUNS, ended_at="now()"),
    "reservation_once": copy("budgets_reservation"),
    "reservation_standing": change("budgets_reservation", LIVE, standing="'gone'", due_at="null", closed_at="now()"),
    "reservation_not_negative": change("budgets_reservation", LIVE, amount=-1),
    "reservation_due_while_open": change("budgets_reservation", LIVE, due_at="due_at + interval '1 second'"),
    "reservation_closed_when_not_open": change("budgets_reservation", LIVE, closed_at="now()"),
    "reservation_spent_when_confirmed": change("budgets_reservation", LIVE, spent=1),
    "item_once": copy("budgets_item"),
    "item_index": copy("budgets_item", index=32),
    "item_carries_what_it_says": change("budgets_item", "standing = 'unattempted'", error_code="'check_failed'"),
    "item_authority_ends": change("budgets_item", "standing = 'unattempted'", reservation_expires_at="now()"),
    "receipt_once": copy("budgets_receipt"),
    "run_of_program_once": copy("budgets_run"),
    "spend_event_once": copy("budgets_spendevent", instance_id="another"),
    "spend_event_legacy_once": copy("budgets_spendevent", call_id="another"),
    "spend_event_status": copy("budgets_spendevent", status="perhaps"),
    "spend_event_not_negative": copy("budgets_spendevent", input_tokens=-1),
    "tag_value_once": copy("budgets_tagvalue"),
}
