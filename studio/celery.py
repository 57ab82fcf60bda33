"""Celery only wakes (DESIGN 2): messages carry ids, may be lost, late or doubled, and decide nothing.

The worker process is a node: beside Celery's pool it hosts `jobs.tasks.host`, which claims work from the database
itself and is therefore started even while the broker cannot be reached. Stopping goes the other way round, because
Celery alone would wait for running attempts: the host ends them, then the pool is empty, then Celery goes.
"""

import logging
import os
import sys
import threading
from typing import Any, Final

from celery import Celery, bootsteps, signals
from celery.app.amqp import AMQP
from celery.loaders.app import AppLoader
from django.conf import settings
from kombu import pools
from kombu.connection import Connection

from studio.stopping import QUICK, QUICK_END, TO_CANCEL

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")

log = logging.getLogger(__name__)

QUEUES: Final = ("calls", "turns", "chores")
PUBLISH_LIMIT: Final = 0.25  # seconds; whoever publishes has committed already, and the pulse finds what is not said
PUBLISHING: Final = {
    "socket_timeout": PUBLISH_LIMIT,
    "socket_connect_timeout": PUBLISH_LIMIT,
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "connect_retries_timeout": PUBLISH_LIMIT,
}
PUBLISHERS: Final = 4  # connections that one process publishes over
ASK_AGAIN: Final = 2.0  # seconds between two looks for a broker that is gone
HARD_END: Final = 70  # exit code of a node whose attempts could not be ended in time


class LastingConnection(Connection):
    """A connection whose return is noticed soon: by itself kombu asks an absent broker less and less often, up to 30 s
    apart, and for so long nodes would go on at the pulse's pace."""

    def ensure_connection(self, *words: Any, **options: Any) -> Any:
        """Ask until it is there, every `ASK_AGAIN` seconds."""
        often = {"interval_start": ASK_AGAIN, "interval_max": ASK_AGAIN}
        return super().ensure_connection(*words, **often | options)  # type: ignore[no-untyped-call]  # kombu's


class LastingAMQP(AMQP):  # type: ignore[misc]  # Celery has no types
    """Celery's messages over such a connection."""

    Connection = LastingConnection


class OwnLoader(AppLoader):  # type: ignore[misc]  # Celery has no types
    """Celery's, without the working folder first on the path while tasks are read."""

    def import_from_cwd(self, module: str, imp: Any = None, package: str | None = None) -> Any:
        """The module, from where every module of the studio comes from."""
        return (imp or self.import_module)(module, package=package)


class WakingCelery(Celery):  # type: ignore[misc]  # Celery has no types
    """Celery whose publishing never waits for a broker; its consumers wait for one for ever."""

    amqp_cls = LastingAMQP
    loader_cls = "studio.celery:OwnLoader"

    def connection_for_write(self, url: str | None = None, **options: Any) -> Any:
        """A connection that gives up after a quarter of a second, so that no request hangs on a dead broker."""
        options.setdefault("connect_timeout", PUBLISH_LIMIT)
        options["transport_options"] = PUBLISHING | (options.get("transport_options") or {})
        return self._connection(url or self.conf.broker_write_url, **options)


CONFIGURATION: Final = dict[str, Any](
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_pool_limit=PUBLISHERS,
    task_serializer="json",
    accept_content=["json"],
    result_backend=None,
    task_ignore_result=True,
    task_queues={name: {"exchange": name, "routing_key": name} for name in QUEUES},
    task_default_queue="chores",
    task_default_exchange="chores",
    task_default_routing_key="chores",
    task_publish_retry=False,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,  # stopping is the database's and the supervisor's business
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    timezone="UTC",
    imports=["jobs.tasks.calls"],
)
path = list(sys.path)
app = WakingCelery("oz0", broker=settings.BROKER_URL, set_as_current=True)
sys.path[:] = path  # Celery puts the working folder first, where a plugin's `catalog.py` would be taken for ours
app.conf.update(CONFIGURATION)
# Celery sets this when it first publishes, and fails when another thread is publishing by then.
pools.set_limit(PUBLISHERS)  # type: ignore[no-untyped-call]  # kombu has no types


# Each message is one offer that may be lost: a line for its coming and one for its going would only bury the others.
for name in ("celery.worker.strategy", "celery.app.trace"):
    logging.getLogger(name).setLevel(logging.WARNING)


class HostStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """The node beside the pool: up before the first message is read, and down before the pool waits for its threads."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._host: Any = None
        self._beside: list[Any] = []  # what works beside the host, on threads of its own
        self._ending: list[threading.Thread] = []

    def start(self, parent: Any) -> None:
        """Claim work from now on."""
        from approvals.tasks.courier import Courier  # models can be read only now that Django is set up
        from jobs.tasks import host
        from jobs.tasks.exporting import Exporting

        self._host = host
        # first, because the start waits for the database, however long that is away
        signals.worker_shutting_down.connect(self._asked_to_stop, weak=False)
        host.start()
        self._beside = [Courier(), Exporting()]
        for one in self._beside:
            one.start()

    def _asked_to_stop(self, sig: str = "SIGTERM", **_: Any) -> None:
        """A signal came: end attempts beside Celery's own way out. After SIGTERM a second one ends them soon."""
        if sig == "SIGTERM" and not self._ending:
            self._end(settings.OZ0_DRAIN, settings.OZ0_DRAIN + TO_CANCEL)
        else:
            self._end(QUICK, QUICK_END)

    def _end(self, grace: float, limit: float) -> None:
        for one in self._beside:
            one.stop()
        ending = threading.Thread(target=self._host.stop, kwargs={"grace": grace}, name="host-stop", daemon=True)
        ending.start()
        self._ending.append(ending)
        last = threading.Timer(limit, _end_hard)
        last.daemon = True
        last.start()

    def stop(self, parent: Any) -> None:
        """Wait until every attempt has ended and is settled."""
        if not self._ending:
            self._end(settings.OZ0_DRAIN, settings.OZ0_DRAIN + TO_CANCEL)
        for ending in self._ending:
            ending.join()

    terminate = stop


def _end_hard() -> None:
    log.error("the node ends with attempts still open: they are settled as lost once their time is over")
    os._exit(HARD_END)


app.steps["worker"].add(HostStep)
