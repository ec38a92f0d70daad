"""qpid-proton against a secured broker at SECURED_ADDR: TLS, users, rights. Skipped without one."""

import os
import unittest
import uuid

from proton import Condition, ConnectionException, Delivery, Message, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from broker import WAIT, Receiver, Transactions, bodies, close, send_in

ADDRESS = os.environ.get("SECURED_ADDR")


@unittest.skipUnless(ADDRESS, "no secured broker")
class Secured(unittest.TestCase):
    def setUp(self):
        name = f"{self.id().rpartition('.')[2]}-{uuid.uuid4().hex[:8]}"
        self.own, self.other = f"ann.{name}", f"other.{name}"

    def connect(self, user, password=None, roots=True):
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        if roots:
            domain.set_trusted_ca_db(os.environ["SECURED_CA"])
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        connection = BlockingConnection(
            f"amqps://{ADDRESS}", timeout=WAIT, ssl_domain=domain, user=user,
            password=password or os.environ["SECURED_PASSWORD"])
        self.addCleanup(close, connection)
        return connection

    def left(self, connection, address):
        return bodies(Receiver(connection, address).drain(1000, Delivery.ACCEPTED))

    def denied(self, command, *arguments):
        with self.assertRaisesRegex(LinkDetached, "user ann may not") as caught:
            command(*arguments)
        self.assertEqual("amqp:unauthorized-access", caught.exception.condition)

    def test_unknown_root_is_refused(self):
        with self.assertRaisesRegex(ConnectionException, "certificate verify failed"):
            self.connect("ann", roots=False)

    def test_wrong_password_is_refused(self):
        self.connect("eve-1")
        with self.assertRaisesRegex(ConnectionException, "amqp:unauthorized-access"):
            self.connect("eve-1", "wrong password")

    def test_own_queue_is_served(self):
        connection = self.connect("ann")
        delivery = connection.create_sender(self.own).send(Message(body="hello", durable=True))
        self.assertEqual(Delivery.ACCEPTED, delivery.remote_state)
        self.assertEqual(["hello"], self.left(connection, self.own))

    def test_own_transaction_commits_or_not(self):
        connection = self.connect("ann")
        transactions, sender = Transactions(connection), connection.create_sender(self.own)
        for body, fail in (("undone", True), ("done", False)):
            transaction = transactions.declare()
            send_in(connection, sender, transaction, body)
            transactions.discharge(transaction, fail)
        self.assertEqual(["done"], self.left(connection, self.own))

    def test_own_reply_comes_to_a_temporary_queue(self):
        connection = self.connect("ann")
        replies = Receiver(connection, None, dynamic=True)
        address = replies.link.remote_source.address
        self.connect("ann").create_sender(address).send(Message(body="reply"))
        self.assertEqual(["reply"], bodies(replies.wait(1)))

    def test_other_names_are_denied(self):
        root, ann = self.connect("root"), self.connect("ann")
        root.create_sender(self.other).send(Message(body="kept"))
        self.denied(ann.create_sender, self.other)
        self.denied(Receiver, ann, self.other)
        anywhere = ann.create_sender(None)
        delivery = anywhere.link.send(Message(address=self.other, body="x"))
        ann.wait(lambda: delivery.settled, msg="an outcome")
        self.assertEqual(Delivery.REJECTED, delivery.remote_state)
        condition = delivery.remote.condition
        self.assertIsInstance(condition, Condition)
        self.assertEqual("amqp:unauthorized-access", condition.name)
        # The same connection goes on, and nothing has changed.
        anywhere.send(Message(address=self.own, body="served"))
        self.assertEqual(["served"], self.left(ann, self.own))
        self.assertEqual(["kept"], self.left(root, self.other))


if __name__ == "__main__":
    unittest.main()
