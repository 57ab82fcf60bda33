"""Traces of jobs at a collector: what they say, and that nothing waits for one (OpenTelemetry, DESIGN 9)."""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from base import db, ids
from jobs.models import Attempt, Call, Exporter, Job
from jobs.operations import exporting, turns
from jobs.operations.exporting import BadExporter
from jobs.queries.exported import exporters_due
from jobs.rules.orders import End
from jobs.rules.spans import span_id
from jobs.rules.turns import TurnAnswer
from jobs.tasks.exporting import Exporting, export
from tenants.models import AuditEntry, Secret
from tenants.rules.who import Actor
from tests.builders import World, a_job, a_turn, a_world, an_order, an_outcome, made, see, settle, swept
from tests.pages.visitors import text_of, visitor
from tests.servers.receivers import Receiver, a_receiver
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("database")
type Ahead = Callable[[timedelta], None]
TOKEN = "Bearer s3cret-4711"


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with a_receiver() as found:
        yield found


def saved(world: World, collector: Receiver, **other: Any) -> None:
    actor = Actor("pat", "link", world.person)
    asked = {
        "url": f"http://{collector.place}/otlp",
        "allowed": [collector.place],
        "header": "Authorization",
        "value": TOKEN,
    }
    exporting.save(tenant=world.tenant, actor=actor, **{**asked, **other})


def due(world: World) -> Any:
    return next((pk for tenant, pk in exporters_due(most=9) if tenant == world.tenant), None)


def sent(world: World) -> bool:
    found = due(world)
    return found is not None and export(tenant=world.tenant, exporter=found)


def kept(world: World) -> Exporter:
    with db.read(world.tenant):
        return Exporter.objects.get()


def a_finished_job(world: World, *wanted: Any) -> Any:
    """A job that called something, and then said that it was done."""
    job = a_job(world)
    for call in a_turn(world, job, *wanted) if wanted else ():
        made(world, call, an_outcome(End.ANSWERED, text="said-oriole"))
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    answer = TurnAnswer(
        say="said-oriole", wanted=(), model="rehearsal:fake", usage={"input_tokens": 7, "output_tokens": 3}
    )
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=answer)
    return job


def read(body: bytes) -> ExportTraceServiceRequest:
    """What a collector reads, by the messages of the protocol; strict about every name and type."""

    def with_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [with_bytes(one) for one in value]
        if not isinstance(value, dict):
            return value
        wanted = {"traceId", "spanId", "parentSpanId"}  # hexadecimal in OTLP, where protobuf's JSON has base64
        return {
            key: b64encode(bytes.fromhex(one)).decode() if key in wanted else with_bytes(one)
            for key, one in value.items()
        }

    return ParseDict(with_bytes(json.loads(body)), ExportTraceServiceRequest())


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_job_is_a_trace_its_calls_are_spans_and_attempts_theirs(collector: Receiver, move_clock: Ahead) -> None:
    world = a_world()
    saved(world, collector)
    job = a_job(world)
    looked, failed = a_turn(world, job, ("look", {"q": "given-oriole"}), "charge")
    settle(world, an_order(world, looked), an_outcome(End.BROKEN))
    move_clock(timedelta(seconds=5))
    made(world, looked, an_outcome(End.ANSWERED, text="said-oriole"))
    made(world, failed, an_outcome(End.ANSWERED, text="said-oriole", is_error=True))
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None
    said = TurnAnswer(say="said-oriole", wanted=(), model="openai:m-1", usage={"input_tokens": 7, "output_tokens": 3})
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=said)
    assert not sent(world), "a job that just ended may have company whose transaction is still open"
    move_clock(timedelta(seconds=20))
    assert sent(world)

    ((headers, body),) = collector.got
    assert collector.asked == ["POST /otlp/v1/traces"]
    assert (headers["authorization"], headers["content-type"]) == (TOKEN, "application/json")
    assert b"oriole" not in body, "no argument, no result, nothing that a model said"
    (resource,) = read(body).resource_spans
    assert {one.key: one.value.string_value for one in resource.resource.attributes} == {
        "service.name": "oz0-studio",
        "oz0.workspace": "acme",
    }
    (scope,) = resource.scope_spans
    spans = {span.span_id.hex(): span for span in scope.spans}
    assert len(spans) == 1 + 2 + 2 + 3
    assert {span.trace_id.hex() for span in spans.values()} == {job.hex}
    root = spans[span_id(job)]
    assert root.name == "invoke_agent clerk" and not root.parent_span_id
    assert attributes(root)["oz0.job.id"] == ids.show(ids.JOB, job)
    chats = [span for span in spans.values() if attributes(span)["gen_ai.operation.name"] == "chat"]
    assert attributes(chats[-1])["gen_ai.usage.output_tokens"] == 3
    assert {span.parent_span_id.hex() for span in chats} == {span_id(job)}
    call = spans[span_id(looked)]
    assert (call.name, call.parent_span_id.hex(), call.status.code) == ("execute_tool shop.look", span_id(job), 0)
    with db.read(world.tenant):
        tries = list(Attempt.objects.filter(call=looked).order_by("number"))
    first, second = (spans[span_id(attempt.pk)] for attempt in tries)
    assert {first.parent_span_id.hex(), second.parent_span_id.hex()} == {span_id(looked)}
    assert (first.name, first.kind, first.status.code, second.status.code) == ("tools/call look", 3, 2, 0)
    told = attributes(first)
    assert (told["mcp.method.name"], told["network.transport"]) == ("tools/call", "pipe")
    assert told["error.type"] == "connection_broke" and told["oz0.attempt.went_out"]
    erred = spans[span_id(failed)]
    assert (erred.status.code, attributes(erred)["error.type"]) == (2, "tool_error")
    for span in spans.values():
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    row = see(world, Job, job)
    assert root.end_time_unix_nano == round(row.ended_at.timestamp() * 1e6) * 1000
    assert (kept(world).sent, kept(world).trouble) == (1, "")
    assert not sent(world)


def test_jobs_are_sent_once_in_order_also_those_that_end_while_the_collector_is_gone(
    collector: Receiver, move_clock: Ahead
) -> None:
    world = a_world()
    before = a_finished_job(world)
    move_clock(timedelta(seconds=1))
    saved(world, collector)
    collector.statuses = [503, 200]
    first = a_finished_job(world, "look")
    move_clock(timedelta(seconds=11))
    assert sent(world)
    assert "503" in kept(world).trouble and kept(world).tries == 1
    second = a_finished_job(world)
    assert due(world) is None, "it is not asked again at once"
    move_clock(timedelta(seconds=30))
    assert sent(world)
    assert (kept(world).sent, kept(world).tries, kept(world).trouble) == (2, 0, "")
    traces = [
        {span.trace_id.hex() for span in read(body).resource_spans[0].scope_spans[0].spans} for _, body in collector.got
    ]
    assert traces == [{first.hex}, {first.hex, second.hex}]
    assert before.hex not in str(traces)


def test_what_a_collector_will_never_take_is_passed_over(collector: Receiver, move_clock: Ahead) -> None:
    world = a_world()
    saved(world, collector)
    collector.statuses = [400, 200]
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    assert sent(world)
    assert "1 jobs were passed over" in kept(world).trouble
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    assert sent(world)
    assert (kept(world).sent, len(collector.got)) == (1, 2)


def test_what_was_claimed_by_a_node_that_died_is_sent_by_another(collector: Receiver, move_clock: Ahead) -> None:
    world = a_world()
    saved(world, collector)
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    assert exporting.claim(tenant=world.tenant, exporter=kept(world).pk) is not None
    assert not sent(world)
    move_clock(exporting.LEASE)
    assert sent(world) and kept(world).sent == 1


def test_a_collector_that_hangs_keeps_no_call_waiting(
    collector: Receiver, move_clock: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_world()
    saved(world, collector)
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    collector.hangs = threading.Event()
    beside = Exporting(period=0.01)
    beside.start()
    until(lambda: bool(collector.got), "nothing was sent", 60)
    a_finished_job(world, "look", "note")  # from start to end while the collector is silent
    swept()
    assert not collector.hangs.is_set() and kept(world).sent == 0
    collector.hangs.set()
    until(lambda: kept(world).sent == 1, "what hung did not arrive", 60)
    beside.stop()
    beside._thread.join(60)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://169.254.169.254/latest", "https://10.0.0.1/", "http://otlp.example/"]
)
def test_nothing_of_the_inside_is_reached_that_an_admin_did_not_allow(url: str, move_clock: Ahead) -> None:
    world = a_world()
    exporting.save(
        tenant=world.tenant, url=url, allowed=[], header="", value=None, actor=Actor("pat", "link", world.person)
    )
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    assert sent(world)
    assert kept(world).tries == 1 and kept(world).trouble


def test_a_redirect_is_not_followed(collector: Receiver, move_clock: Ahead) -> None:
    world = a_world()
    saved(world, collector)
    collector.statuses, collector.headers = [302], {"Location": f"http://{collector.place}/else"}
    a_finished_job(world)
    move_clock(timedelta(seconds=11))
    assert sent(world)
    assert collector.asked == ["POST /otlp/v1/traces"] and "not followed" in kept(world).trouble


@pytest.mark.rule("A12")
def test_an_admin_says_where_traces_go_and_the_secret_is_seen_by_nobody(collector: Receiver) -> None:
    world = a_world()
    admin = visitor(world)
    form = {"url": f"http://{collector.place}", "allowed": collector.place, "header": "Authorization", "value": TOKEN}
    assert admin.post("/settings/traces/", form).status_code == 302
    page = text_of(admin.get("/settings/traces/"))
    assert collector.place in page and "4711" not in page
    refused = admin.post("/settings/traces/", {**form, "url": "https://else.example", "value": ""})
    assert refused.status_code == 422 and "enter its value again" in text_of(refused)
    for odd in ({"url": "ftp://a"}, {"allowed": "a"}, {"header": "a b"}, {"header": ""}, {"value": "ä"}):
        assert admin.post("/settings/traces/", {**form, **odd}).status_code == 422
    assert admin.post("/settings/traces/turn/", {"on": "no"}).status_code == 302
    assert due(world) is None and not kept(world).on
    assert admin.post("/settings/traces/turn/", {"on": "yes"}).status_code == 302
    assert admin.post("/settings/traces/remove/").status_code == 302
    with db.read(world.tenant):
        assert not Secret.objects.exists() and not Exporter.objects.exists()
        verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
        assert verbs == ["exporter.saved", "exporter.off", "exporter.on", "exporter.removed"]
        assert "4711" not in str(list(AuditEntry.objects.values()))
    with pytest.raises(BadExporter):
        saved(world, collector, value=None, header="", url="x")


def test_one_workspaces_jobs_go_to_its_own_collector(collector: Receiver, move_clock: Ahead) -> None:
    ours, theirs = a_world("ours"), a_world("theirs")
    saved(ours, collector)
    mine, other = a_finished_job(ours), a_finished_job(theirs, "look")
    move_clock(timedelta(seconds=11))
    assert sent(ours) and due(theirs) is None
    ((_, body),) = collector.got
    assert mine.hex in body.decode() and other.hex not in body.decode()
    with db.read(theirs.tenant):
        assert not Exporter.objects.exists() and Call.objects.count() == 1
