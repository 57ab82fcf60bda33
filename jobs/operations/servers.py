"""Which server a tool's calls need, complete with what it takes to reach it."""

import sys
from uuid import UUID

from django.conf import settings

from catalog.models import Tool, Transport
from catalog.operations.connections import remote_of
from catalog.operations.variables import variables_of_tool
from catalog.rules.manifest import command
from catalog.rules.sandbox import Sandbox
from catalog.rules.servers import Remote, ServerSpec


def server_of(tool: Tool, job: UUID | None = None) -> ServerSpec:
    """The server that a tool's calls need; a sandboxed one is the `job`'s own, or of none for its listing.

    Demands an open read or write of its tenant.
    """
    remote: Remote | None = None
    protocol = ""
    if tool.transport == Transport.URL:
        remote, protocol, credential_version = remote_of(tool)
        env, trouble = dict[str, str](), ""
    else:
        env, credential_version, trouble = variables_of_tool(tool)
    return ServerSpec(
        tenant=tool.tenant_id,
        tool_id=tool.pk,
        tool=tool.slug,
        version=f"{tool.plugin_version.digest}.{tool.server_generation}",
        credential_version=credential_version,
        argv=command(tuple(tool.argv), python=sys.executable, home=str(settings.OZ0_HOME)),
        cwd=tool.plugin_version.folder,
        startup=tool.startup,
        slots=tool.slots,
        protocol=protocol,
        remote=remote,
        sandbox=Sandbox(**tool.sandbox) if tool.sandbox else None,
        job=job if tool.transport == Transport.SANDBOX else None,
        env=env,
        trouble=trouble,
    )
