"""A broker that is dead or hangs costs whoever publishes next to nothing, and its return is noticed at once."""

import time

import psutil
import pytest
from kombu import pools
from kombu.exceptions import OperationalError

from studio import embedded
from studio.celery import CONFIGURATION, WakingCelery

pytestmark = pytest.mark.faults
AT_ONCE = 1.0  # seconds; a quarter of one is what publishing waits, the rest is the machine's


@pytest.fixture
def broker(tmp_path):
    with embedded.valkey(tmp_path, keep=False) as running:
        yield running


@pytest.fixture
def app(broker):
    app = WakingCelery("test", broker=broker.url_broker, set_as_current=False)
    app.conf.update(CONFIGURATION)
    yield app
    app.close()


def publish(app):
    app.send_task("jobs.run_call", kwargs={"row": "1"}, queue="calls", ignore_result=True, retry=False)


def how_long_it_fails(app):
    began = time.monotonic()
    with pytest.raises(OperationalError):
        publish(app)
    return time.monotonic() - began


def test_publishing_to_a_dead_broker_fails_at_once_and_works_again_when_it_is_back(broker, app):
    publish(app)
    broker.kill()
    assert how_long_it_fails(app) < AT_ONCE
    assert how_long_it_fails(app) < AT_ONCE
    broker.start()
    publish(app)


def test_publishing_to_a_broker_that_hangs_fails_at_once(broker, app):
    publish(app)
    server = psutil.Process(broker.child.process.pid).children()[0]
    server.suspend()
    assert how_long_it_fails(app) < AT_ONCE
    server.resume()
    publish(app)


def test_the_first_publishing_of_a_process_does_not_wait_for_a_dead_broker_either(broker, app):
    broker.kill()
    assert how_long_it_fails(app) < AT_ONCE


def test_what_publishes_first_is_not_disturbed_by_another_thread_that_publishes(broker):
    """Celery sets the limit of the pools that all threads share when it first publishes."""
    first, second = (WakingCelery(name, broker=broker.url_broker, set_as_current=False) for name in ("a", "b"))
    for app in (first, second):
        app.conf.update(CONFIGURATION)
    with pools.producers[first.connection_for_write()].acquire(block=True):
        publish(second)
    first.close()
    second.close()
