"""The one task that waits for everybody's calls: it hears nudges of each tenant for as long as somebody waits."""

import asyncio
import time
from collections.abc import Collection, Mapping
from uuid import UUID

from channels.layers import channel_layers, get_channel_layer
from django.conf import settings

from base import ids, nudge
from jobs.gateway import watch
from jobs.gateway.watch import Watch
from jobs.queries.outside import Standing
from jobs.rules.states import CallState
from studio import embedded


def test_nudges_of_each_tenant_are_heard_also_after_quiet_seconds(valkey: embedded.Valkey) -> None:
    layer = settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"][0]
    before, layer["address"] = layer["address"], valkey.url
    channel_layers.backends.clear()
    states = {ids.new(): CallState.RUNNING for _ in range(3)}
    looked: list[float] = []

    async def look(calls: Collection[UUID]) -> Mapping[UUID, Standing]:
        looked.append(time.monotonic())
        return {call: Standing(states[call]) for call in calls}

    async def waits() -> list[float]:
        found, own = [], Watch(look)
        poll, watch.POLL = watch.POLL, 0.3  # type: ignore[misc]
        try:
            for call in states:
                tenant = ids.new()
                with own.on(call, tenant) as waiter:
                    await asyncio.sleep(1.0)  # several times as long as it waits for a nudge
                    watch.POLL = 30.0  # type: ignore[misc]
                    await asyncio.sleep(0.7)
                    states[call] = CallState.SUCCEEDED
                    began = time.monotonic()
                    await get_channel_layer().group_send(nudge.jobs_group(tenant), {"type": "nudge", "seq": 1})
                    while waiter.standing is None or waiter.standing.state is not CallState.SUCCEEDED:
                        await waiter.changed(20)
                        assert time.monotonic() - began < 15, "the nudge was not heard"
                    found.append(time.monotonic() - began)
                    watch.POLL = 0.3  # type: ignore[misc]
            return found
        finally:
            watch.POLL = poll  # type: ignore[misc]
            await own.stop()

    try:
        assert len(asyncio.run(waits())) == 3
    finally:
        layer["address"] = before
        channel_layers.backends.clear()
