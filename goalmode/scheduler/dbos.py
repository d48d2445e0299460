"""DBOS carries deliveries between machines, in the database of the store: it says who tries, the store decides.

Nothing of DBOS is read to decide anything. All its tables may be lost: they are made again, and what was on its way
is issued again. The library is loaded when a server is started with it, and not before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from goalmode.domain.exits import Exit
from goalmode.errors import BadInput, GoalmodeError, StoreError
from goalmode.loop.ports import Sink
from goalmode.scheduler.daemon import Daemon
from goalmode.scheduler.deliveries import Deliveries, WakeDelivered
from goalmode.state import reading
from goalmode.state.deliveries import Delivery
from goalmode.state.owner import Owner
from goalmode.state.store import Store

APPLICATION = "goalmode"
VERSION = "1"
"""Of what a delivery says, for servers of different releases beside each other. Not left to DBOS: it would take a hash
of our code, and leave the deliveries of any other code where they are."""

WORKFLOW = "goalmode.deliver"

CONNECTIONS = 5
"""Of DBOS itself, for each server; the store's come on top."""

FINISH_SECONDS = 1
"""At the end, for DBOS to write down what came of the last deliveries. Nothing depends on it."""


def workflow_id(goal: int, number: int) -> str:
    """DBOS runs a workflow of one id once, however often it is enqueued."""
    return f"g{goal}:d{number}"


def queue_of(label: str) -> str:
    """Each host label has a queue of its own. Not a partitioned one: a dead worker's delivery would hold it."""
    return f"{APPLICATION}:{label}"


def executor_id(owner: Owner) -> str:
    """Another one for each process: DBOS lets a process begin anew whatever its id left unfinished."""
    return f"{owner.name}:{secrets.token_hex(8)}"


def require(url: str | None) -> None:
    """Refuse what cannot be served by way of DBOS, before anything is opened.

    Raises:
        BadInput: the store is a file, or the extra is not installed.
    """
    if not reading.on_server(url):
        raise BadInput(
            "engine",
            "dbos",
            f"it needs a store on PostgreSQL, --store postgresql+psycopg://USER@HOST/DATABASE; {reading.name_of(url)} "
            "is a file, which several servers of one machine share without it",
        )
    _library()


@contextmanager
def daemon(
    store: Store,
    wake_goal: WakeDelivered,
    *,
    labels: Collection[str],
    concurrency: int,
    poll_seconds: float,
    sink: Sink,
    stop: Callable[[], Exit | None],
) -> Iterator[Daemon]:
    """A server that wakes what DBOS delivers to it. The block serves with it; afterwards nothing of DBOS runs.

    Raises:
        StoreError: DBOS could not be started.
    """
    carrier = Dbos(store, labels, concurrency=concurrency, poll_seconds=poll_seconds)
    deliveries = Deliveries(store, labels, wake_goal, carrier, stopping=lambda: stop() is not None)
    made = Daemon(
        store, deliveries.wake, labels=labels, concurrency=concurrency, sink=sink, lookout=deliveries
    )
    deliveries.hurry = made.hurry
    carrier.start(deliveries.hand)
    try:
        yield made
    finally:
        deliveries.close()
        carrier.stop()


class Dbos:
    """See `goalmode.scheduler.deliveries.Carrier`. One for each process: DBOS is a singleton."""

    def __init__(
        self, store: Store, labels: Collection[str], *, concurrency: int, poll_seconds: float
    ) -> None:
        self._store, self._labels = store, tuple(labels)
        self._concurrency, self._poll_seconds = concurrency, poll_seconds
        self._library = _library()
        self._client: Any = None
        self._broken = False

    def start(self, hand: Callable[[int, int], str]) -> None:
        """Take deliveries from now on, and give each to `hand`, on a thread of its own.

        Raises:
            StoreError: the tables of DBOS could not be made or read.
        """
        dbos, serializer = self._library.DBOS, self._library.DBOSPortableJSONSerializer()

        def wake(goal: int, number: int) -> str:
            return hand(goal, number)

        step = dbos.step(name="goalmode.wake")(wake)

        def deliver(goal: int, number: int) -> str:
            return str(step(goal, number))

        with self._plain_errors():
            try:
                dbos(
                    config={
                        "name": APPLICATION,
                        "system_database_url": self._store.url,
                        "sys_db_pool_size": CONNECTIONS,
                        "application_version": VERSION,
                        "executor_id": executor_id(self._store.owner),
                        "serializer": serializer,
                        "use_listen_notify": False,
                        "log_level": "CRITICAL",  # What matters of it is told by the store's own events.
                    }
                )
                dbos.workflow(name=WORKFLOW)(deliver)
                dbos.listen_queues([queue_of(label) for label in self._labels])
                dbos.launch()
                self._register_queues()
                self._client = self._library.DBOSClient(
                    system_database_url=self._store.url,
                    system_database_pool_size=1,
                    serializer=serializer,
                    application_name=APPLICATION,
                    retry_connection_errors=False,
                )
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        self._library.DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=FINISH_SECONDS)
        if self._client is not None:
            self._client.destroy()

    def prepare(self) -> None:
        """Make the tables anew, if the last delivery could not be written."""
        if self._broken:
            with self._plain_errors():
                self._library.DBOS.migrate(self._store.url)
                self._register_queues()
            self._broken = False

    def enqueue(self, connection: Any, delivery: Delivery) -> None:
        options = {
            "workflow_name": WORKFLOW,
            "queue_name": queue_of(delivery.label),
            "workflow_id": workflow_id(delivery.goal, delivery.number),
            "app_version": VERSION,
        }
        try:
            with self._plain_errors():
                self._client.enqueue_in_transaction(connection, options, delivery.goal, delivery.number)
        except StoreError:
            self._broken = True
            raise

    def forget(self, issued: Sequence[Delivery]) -> None:
        """Cancel what was lost, so that it is not delivered after all, and delete what came before that."""
        lost = [workflow_id(one.goal, one.number - 1) for one in issued if one.replaces]
        old = [workflow_id(one.goal, one.number - 2) for one in issued if one.number > 2]
        with suppress(Exception):  # Hygiene: a late delivery claims nothing, and an old row is only a row.
            self._client.cancel_workflows(lost)
            self._client.delete_workflows(old)

    def _register_queues(self) -> None:
        """The same for all servers: with different ones beside each other the last one's concurrency counts."""
        for label in self._labels:
            self._library.DBOS.register_queue(
                queue_of(label),
                worker_concurrency=self._concurrency,
                polling_interval_sec=self._poll_seconds,
                on_conflict="always_update",
            )

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Of DBOS's own errors only what they are: their text may hold the store's URL with its password."""
        try:
            with self._store.database.plain_errors():
                yield
        except GoalmodeError:
            raise
        except Exception as error:  # noqa: BLE001 - a library's, of any kind
            raise StoreError(f"store {self._store.name}: DBOS failed ({type(error).__name__})") from None


def _library() -> Any:
    try:
        return import_module("dbos")
    except ModuleNotFoundError as error:
        if error.name != "dbos":
            raise
        raise BadInput("engine", "dbos", "it needs the extra: pip install 'goalmode[dbos]'") from None
