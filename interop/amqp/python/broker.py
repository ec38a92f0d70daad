"""The broker under test (AMQP_URL) and blocking helpers over qpid-proton's engine."""

import os
import unittest
import uuid

from proton import Delivery, Described, Endpoint, Link, Message, Terminus, Timeout, symbol, ulong
from proton.utils import BlockingConnection

URL = os.environ.get("AMQP_URL", "amqp://127.0.0.1:5672")

# What is there comes sooner than this many seconds.
WAIT = 15

TRANSACTIONAL = 0x34
MODIFIED = Delivery.MODIFIED


class Scenario(unittest.TestCase):
    """A queue that nobody else uses, and connections that end with the test."""

    def setUp(self):
        method = self.id().rpartition(".")[2]
        self.queue = f"{method}-{uuid.uuid4().hex[:8]}"

    def connect(self, **options):
        connection = BlockingConnection(URL, timeout=WAIT, **options)
        self.addCleanup(close, connection)
        return connection

    def send(self, *bodies):
        """Stores durable messages of these bodies, by a connection of its own."""
        connection = self.connect()
        sender = connection.create_sender(self.queue)
        for body in bodies:
            sender.send(Message(body=body, durable=True))
        connection.close()

    def left(self):
        """The bodies of all that is in the queue, which is empty afterwards."""
        connection = self.connect()
        receiver = Receiver(connection, self.queue)
        found = bodies(receiver.drain(1000, Delivery.ACCEPTED))
        connection.close()
        return found


def close(connection):
    """Closes it, whatever became of it: that is not what the test is about."""
    try:
        connection.close()
    except Exception as error:  # pylint: disable=broad-except
        if connection.conn is not None and connection.conn.state & Endpoint.REMOTE_ACTIVE:
            raise error


class Receiver:
    """A receiving link whose credit only the test gives."""

    def __init__(self, connection, address, name=None, options=None, dynamic=False):
        self.connection = connection
        self.arrived = []
        self.handler = Arrivals(self.arrived)
        self.blocking = connection.create_receiver(
            address, credit=0, handler=self.handler, name=name, options=options, dynamic=dynamic)
        self.link = self.blocking.link

    def wait(self, count, credit=None):
        """Waits until so many deliveries have come: pairs of message and delivery."""
        self.link.flow(count if credit is None else credit)
        self.connection.wait(lambda: len(self.arrived) >= count, msg=f"{count} messages")
        taken, self.arrived[:] = list(self.arrived), []
        return taken

    def drain(self, credit, state=None):
        """Asks for all that is there, at most `credit`; settles it when a state is given."""
        self.link.drain(credit)
        self.connection.wait(lambda: self.link.credit == 0, msg="draining")
        self.link.drain_mode = False
        taken, self.arrived[:] = list(self.arrived), []
        if state is not None:
            for _, delivery in taken:
                settle(delivery, state)
            self.flush()
        return taken

    def flush(self):
        """Returns when the broker has read what was sent to it: a session's round trip."""
        flush(self.connection)

    def detach(self):
        """Detaches without closing: the link can be attached again."""
        self.link.detach()
        self.connection.wait(lambda: self.handler.detached, msg="detaching")

    def close(self):
        self.blocking.close()


class Arrivals:
    """Notes what arrives on a link; a handler of proton's reactor."""

    def __init__(self, arrived):
        self.arrived = arrived
        self.detached = False

    def on_delivery(self, event):
        delivery = event.delivery
        if not delivery.link.is_receiver or not delivery.readable or delivery.partial:
            return
        message = Message()
        message.recv(event.receiver)
        self.arrived.append((message, delivery))
        event.container.yield_()

    def on_link_remote_detach(self, event):
        self.detached = True
        event.container.yield_()

    def on_unhandled(self, name, event):
        """Nothing else is of interest."""


def bodies(deliveries):
    """Their bodies. Proton's binaries are views of memory that ends with their message."""
    found = [message.body for message, _ in deliveries]
    return [bytes(body) if isinstance(body, memoryview) else body for body in found]


def settle(delivery, state, failed=None, undeliverable=None):
    """Settles a delivery with an outcome."""
    if failed is not None:
        delivery.local.failed = failed
    if undeliverable is not None:
        delivery.local.undeliverable = undeliverable
    delivery.update(state)
    delivery.settle()


def flush(connection):
    """Returns when the broker has read what was sent to it before: a session opens and ends."""
    session = connection.conn.session()
    session.open()
    connection.wait(lambda: session.state & Endpoint.REMOTE_ACTIVE, msg="a session")
    session.close()
    connection.wait(lambda: session.state & Endpoint.REMOTE_CLOSED, msg="a session's end")


class Transactions:
    """The coordinator of a connection (part 4 of the specification)."""

    def __init__(self, connection):
        self.connection = connection
        link = connection.conn.session()
        link.open()
        self.link = link.sender(f"coordinator-{uuid.uuid4().hex[:8]}")
        self.link.target.type = Terminus.COORDINATOR
        self.link.target.capabilities.put_object(symbol("amqp:local-transactions"))
        self.link.open()
        self.connection.wait(lambda: self.link.credit > 0, msg="the coordinator's credit")

    def declare(self):
        """The identity of a new transaction."""
        delivery = self.ask(Described(symbol("amqp:declare:list"), [None]))
        return delivery.remote.data[0]

    def discharge(self, transaction, fail=False):
        """Commits or rolls back; the outcome's state."""
        body = Described(symbol("amqp:discharge:list"), [transaction, fail])
        return self.ask(body).remote_state

    def ask(self, body):
        delivery = self.link.delivery(uuid.uuid4().hex)
        self.link.stream(Message(body=body).encode())
        self.link.advance()
        self.connection.wait(lambda: delivery.settled or delivery.remote_state, msg="an outcome")
        delivery.settle()
        return delivery


def send_in(connection, sender, transaction, body):
    """Sends a durable message in a transaction; returns when the broker has it."""
    link = sender.link
    connection.wait(lambda: link.credit > 0, msg="credit")
    delivery = link.delivery(uuid.uuid4().hex)
    delivery.local.data = [transaction]
    delivery.update(TRANSACTIONAL)
    link.stream(Message(body=body, durable=True).encode())
    link.advance()
    connection.wait(lambda: delivery.settled or delivery.remote_state, msg="an outcome")
    delivery.settle()
    return delivery


def accept_in(delivery, transaction):
    """Accepts a delivery in a transaction, and settles it."""
    accepted = Described(ulong(Delivery.ACCEPTED), [])
    delivery.local.data = [transaction, accepted]
    delivery.update(TRANSACTIONAL)
    delivery.settle()


__all__ = ["Arrivals", "Link", "MODIFIED", "Receiver", "Scenario", "Timeout", "Transactions", "URL",
           "WAIT", "accept_in", "bodies", "close", "flush", "send_in", "settle"]
