"""Harness sessions for tests, walked to without a program: the test calls in its stead."""

from typing import Any
from uuid import UUID

from base import db
from catalog.rules.agents import Limits
from jobs.models import Call, Session
from jobs.operations import harness, outside
from jobs.operations.outside import Client
from jobs.rules.sessions import SessionEnd, SessionOrder
from jobs.rules.turns import Wanted
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import bearer
from tenants.rules.bearers import DRAWN, written
from tests.builders import World, a_node, a_person, a_tenant, a_tool, an_agent, see


def a_harness(limits: Limits | None = None) -> World:
    """A tenant whose agent is a program."""
    tenant = a_tenant()
    person = a_person(tenant)
    a_tool(tenant)
    an_agent(tenant, harness=("/bin/false",), limits=limits)
    return World(tenant, person, a_node())


def the_session(world: World, job: UUID) -> Session:
    with db.read(world.tenant):
        return Session.objects.get(job_id=job)


def a_token(letter: str) -> str:
    return written(letter * DRAWN)


def claimed(world: World, job: UUID, letter: str = "a", node: UUID | None = None) -> SessionOrder | None:
    """The job's session, claimed by a node; None when it cannot be."""
    session, token = the_session(world, job).pk, a_token(letter)
    return harness.start(tenant=world.tenant, session_id=session, node_id=node or world.node, token=token)


def program(world: World, job: UUID, letter: str = "a", node: UUID | None = None) -> Client:
    """The job's program as the gateway knows it, once a node has claimed the session."""
    assert claimed(world, job, letter, node) is not None, "the session cannot be claimed"
    found = bearer(hash_of(a_token(letter)))
    assert found is not None and found.of_session
    return Client(world.tenant, found.token_id, found.name, found.agent, None)


def called(client: Client, function: str, arguments: Any = None) -> UUID:
    return outside.submit(client=client, want=Wanted(f"shop__{function}", arguments or {}, "n:1"))


def key(world: World, call: UUID) -> str:
    return see(world, Call, call).key


def ended(world: World, order_of: UUID, how: SessionEnd, node: UUID | None = None, incarnation: int = 1) -> bool:
    session, node = the_session(world, order_of).pk, node or world.node
    return harness.ended(tenant=world.tenant, session_id=session, node_id=node, incarnation=incarnation, how=how)
