"""What AMQP 1.0 promises, asked by qpid-proton."""

import uuid

from proton import Data, Delivery, Endpoint, Link, Message, ProtonException, Terminus, symbol, ulong
from proton.reactor import AtLeastOnce, AtMostOnce, Container, Copy, LinkOption, Selector
from proton.utils import LinkDetached

from broker import MODIFIED, Receiver, Scenario, Transactions
from broker import accept_in, bodies, flush, send_in, settle


class Mode(LinkOption):
    """Both settle modes of a link."""

    def __init__(self, sender, receiver):
        self.sender, self.receiver = sender, receiver

    def apply(self, link):
        link.snd_settle_mode = self.sender
        link.rcv_settle_mode = self.receiver


class Capability(LinkOption):
    """What kind of node the terminus is to be."""

    def __init__(self, name):
        self.name = name

    def apply(self, link):
        terminus = link.source if link.is_receiver else link.target
        terminus.capabilities.put_object(symbol(self.name))


class Durable(LinkOption):
    """A subscription that stays."""

    def apply(self, link):
        link.source.durability = Terminus.DELIVERIES
        link.source.expiry_policy = Terminus.EXPIRE_NEVER
        link.source.capabilities.put_object(symbol("topic"))


class Sending(Scenario):
    def test_unsettled_message_is_accepted(self):
        sender = self.connect().create_sender(self.queue, options=AtLeastOnce())
        delivery = sender.send(Message(body="hello", durable=True))
        self.assertEqual(Delivery.ACCEPTED, delivery.remote_state)
        self.assertEqual(["hello"], self.left())

    def test_settled_message_needs_no_answer(self):
        connection = self.connect()
        sender = connection.create_sender(self.queue, options=AtMostOnce())
        for number in range(50):
            sender.send(Message(body=number))
        sender.close()
        self.assertEqual(list(range(50)), self.left())

    def test_every_settle_mode(self):
        connection = self.connect()
        expected = []
        for mode in (Link.SND_UNSETTLED, Link.SND_SETTLED, Link.SND_MIXED):
            sender = connection.create_sender(self.queue, options=Mode(mode, Link.RCV_FIRST))
            body = f"mode {mode}"
            sender.send(Message(body=body))
            expected.append(body)
            sender.close()
        self.assertEqual(expected, self.left())

    def test_many_in_flight(self):
        connection = self.connect()
        sender = connection.create_sender(self.queue)
        deliveries = []
        for number in range(2500):
            connection.wait(lambda: sender.link.credit > 0)
            deliveries.append(sender.link.send(Message(body=number, durable=True)))
        connection.wait(lambda: all(delivery.settled for delivery in deliveries))
        self.assertEqual({Delivery.ACCEPTED}, {d.remote_state for d in deliveries})
        self.assertEqual(list(range(1000)), self.left())
        self.assertEqual(list(range(1000, 2000)), self.left())
        self.assertEqual(list(range(2000, 2500)), self.left())

    def test_large_message(self):
        body = bytes(range(256)) * (5 << 12)
        self.send(body)
        self.assertEqual([body], self.left())

    def test_small_frames(self):
        body = bytes(range(256)) * 400
        connection = self.connect(max_frame_size=1024)
        connection.create_sender(self.queue).send(Message(body=body))
        receiver = Receiver(connection, self.queue)
        self.assertEqual([body], bodies(receiver.drain(1, Delivery.ACCEPTED)))

    def test_every_section_comes_back(self):
        message = Message(
            body={"key": [1, "two", None, 3.5]}, id=uuid.uuid4(), subject="subject",
            correlation_id=ulong(7), reply_to="reply", content_type=symbol("text/x"),
            group_id="group", group_sequence=3, reply_to_group_id="other", user_id=b"user",
            creation_time=1.5, priority=7, durable=True,
            properties={"a": 1, "b": "text", "c": True, "d": None})
        message.annotations = {symbol("x-opt-mine"): "kept"}
        connection = self.connect()
        connection.create_sender(self.queue).send(message)
        [(back, delivery)] = Receiver(connection, self.queue).wait(1)
        settle(delivery, Delivery.ACCEPTED)
        for field in ("body", "id", "subject", "correlation_id", "reply_to", "content_type",
                      "group_id", "group_sequence", "reply_to_group_id", "user_id", "creation_time",
                      "priority", "durable", "properties"):
            self.assertEqual(getattr(message, field), getattr(back, field), field)
        self.assertEqual("kept", back.annotations[symbol("x-opt-mine")])
        self.assertEqual(0, back.delivery_count)

    def test_anonymous_sender_names_each_target(self):
        connection = self.connect()
        sender = connection.create_sender(None)
        sender.send(Message(address=self.queue, body="there"))
        sender.send(Message(address=self.queue + "-other", body="elsewhere"))
        self.assertEqual(["there"], self.left())
        self.queue += "-other"
        self.assertEqual(["elsewhere"], self.left())


class Receiving(Scenario):
    def test_credit_is_never_exceeded(self):
        self.send(*range(10))
        receiver = Receiver(self.connect(), self.queue)
        flush(receiver.connection)
        self.assertEqual([], receiver.arrived)
        taken = receiver.wait(3)
        flush(receiver.connection)
        self.assertEqual([], receiver.arrived)
        taken += receiver.wait(2)
        self.assertEqual([0, 1, 2, 3, 4], bodies(taken))

    def test_drain_delivers_then_takes_credit_back(self):
        receiver = Receiver(self.connect(), self.queue)
        self.assertEqual([], receiver.drain(10))
        self.send("one", "two")
        self.assertEqual(["one", "two"], bodies(receiver.drain(10, Delivery.ACCEPTED)))
        self.send("three")
        flush(receiver.connection)
        self.assertEqual([], receiver.arrived)
        self.assertEqual(["three"], bodies(receiver.wait(1)))

    def test_settled_deliveries_are_gone_at_once(self):
        self.send("one", "two")
        connection = self.connect()
        mode = Mode(Link.SND_SETTLED, Link.RCV_FIRST)
        receiver = Receiver(connection, self.queue, options=mode)
        [(message, delivery)] = receiver.wait(1)
        self.assertEqual("one", message.body)
        self.assertTrue(delivery.settled)
        connection.close()
        self.assertEqual(["two"], self.left())

    def test_dispositions_of_a_range(self):
        self.send(*range(100))
        receiver = Receiver(self.connect(), self.queue)
        # Proton writes one disposition for neighbours of one state: 0 to 49, then 60 to 99.
        for number, (_, delivery) in enumerate(receiver.wait(100)):
            if not 50 <= number < 60:
                settle(delivery, Delivery.ACCEPTED)
        flush(receiver.connection)
        receiver.connection.close()
        self.assertEqual(list(range(50, 60)), self.left())

    def test_dispositions_out_of_order(self):
        self.send(*range(20))
        receiver = Receiver(self.connect(), self.queue)
        taken = receiver.wait(20)
        for _, delivery in reversed(taken[::2]):
            settle(delivery, Delivery.ACCEPTED)
        flush(receiver.connection)
        receiver.connection.close()
        self.assertEqual(list(range(1, 20, 2)), self.left())

    def test_released_comes_back_uncounted_in_place(self):
        self.send("one", "two")
        receiver = Receiver(self.connect(), self.queue)
        [(_, delivery)] = receiver.wait(1)
        settle(delivery, Delivery.RELEASED)
        receiver.flush()
        taken = receiver.wait(2)
        self.assertEqual(["one", "two"], bodies(taken))
        self.assertEqual([0, 0], [message.delivery_count for message, _ in taken])

    def test_modified_failed_comes_back_counted(self):
        self.send("one", "two")
        receiver = Receiver(self.connect(), self.queue)
        for attempt in range(4):
            [(message, delivery)] = receiver.wait(1)
            self.assertEqual("one", message.body)
            self.assertEqual(attempt, message.delivery_count)
            settle(delivery, MODIFIED, failed=True)
            receiver.flush()

    def test_modified_without_failure_is_not_counted(self):
        self.send("one")
        receiver = Receiver(self.connect(), self.queue)
        for _ in range(3):
            [(message, delivery)] = receiver.wait(1)
            self.assertEqual(0, message.delivery_count)
            settle(delivery, MODIFIED, failed=False)
            receiver.flush()

    def test_undeliverable_here_does_not_return(self):
        self.send("poison", "good")
        receiver = Receiver(self.connect(), self.queue)
        [(_, delivery)] = receiver.wait(1)
        settle(delivery, MODIFIED, failed=True, undeliverable=True)
        self.assertEqual(["good"], bodies(receiver.drain(10)))

    def test_rejected_goes_to_the_dead_letters(self):
        mark = uuid.uuid4().hex
        connection = self.connect()
        message = Message(body="poison", durable=True, correlation_id=mark)
        connection.create_sender(self.queue).send(message)
        receiver = Receiver(connection, self.queue)
        [(_, delivery)] = receiver.wait(1)
        settle(delivery, Delivery.REJECTED)
        chosen = Selector(f"JMSCorrelationID = '{mark}'")
        [(dead, delivery)] = Receiver(connection, "DLQ", options=chosen).wait(1)
        self.assertEqual("poison", dead.body)
        settle(delivery, Delivery.ACCEPTED)
        self.assertEqual([], receiver.drain(10))

    def test_settled_without_outcome_takes_the_default(self):
        self.send("one")
        receiver = Receiver(self.connect(), self.queue)
        [(_, delivery)] = receiver.wait(1)
        delivery.settle()
        flush(receiver.connection)
        receiver.connection.close()
        self.assertEqual(["one"], self.left())

    def test_unsettled_delivery_returns_with_the_link(self):
        self.send("one", "two")
        connection = self.connect()
        receiver = Receiver(connection, self.queue)
        receiver.wait(2)
        receiver.close()
        flush(connection)
        self.assertEqual(["one", "two"], self.left())

    def test_unsettled_delivery_returns_with_the_connection(self):
        self.send("one", "two")
        receiver = Receiver(self.connect(), self.queue)
        receiver.wait(2)
        receiver.connection.close()
        self.assertEqual(["one", "two"], self.left())

    def test_link_detaches_and_attaches_again(self):
        self.send("one", "two")
        connection = self.connect()
        for body in ("one", "two"):
            receiver = Receiver(connection, self.queue, name="again")
            [(message, delivery)] = receiver.wait(1)
            self.assertEqual(body, message.body)
            settle(delivery, Delivery.ACCEPTED)
            receiver.detach()
        self.assertEqual([], self.left())

    def test_higher_priority_goes_first(self):
        connection = self.connect()
        sender = connection.create_sender(self.queue)
        for priority in (1, 9, 5):
            sender.send(Message(body=priority, priority=priority))
        self.assertEqual([9, 5, 1], self.left())

    def test_selector_chooses(self):
        connection = self.connect()
        sender = connection.create_sender(self.queue)
        for colour in ("red", "blue", "red"):
            sender.send(Message(body=colour, properties={"colour": colour}))
        chosen = Selector("colour = 'red'")
        receiver = Receiver(connection, self.queue, options=chosen)
        self.assertEqual(["red", "red"], bodies(receiver.drain(10, Delivery.ACCEPTED)))
        self.assertEqual(["blue"], self.left())

    def test_invalid_selector_is_refused(self):
        with self.assertRaises(LinkDetached) as caught:
            Receiver(self.connect(), self.queue, options=Selector("colour = "))
        self.assertEqual("amqp:invalid-field", caught.exception.condition)

    def test_browsing_takes_nothing(self):
        self.send(*range(30))
        connection = self.connect()
        for _ in range(2):
            receiver = Receiver(connection, self.queue, options=Copy())
            self.assertEqual(list(range(30)), bodies(receiver.drain(100, Delivery.ACCEPTED)))
            receiver.close()
        self.assertEqual(list(range(30)), self.left())

    def test_many_links_of_one_session(self):
        connection = self.connect()
        receivers = [Receiver(connection, f"{self.queue}{number}") for number in range(50)]
        for number in range(50):
            connection.create_sender(f"{self.queue}{number}").send(Message(body=number))
        for number, receiver in enumerate(receivers):
            self.assertEqual([number], bodies(receiver.wait(1)))


class Topics(Scenario):
    def test_subscribers_get_every_message(self):
        connection = self.connect()
        topic = Capability("topic")
        one = Receiver(connection, self.queue, options=topic)
        other = Receiver(self.connect(), self.queue, options=topic)
        sender = connection.create_sender(self.queue, options=topic)
        sender.send(Message(body="one", durable=True))
        sender.send(Message(body="two"))
        for receiver in (one, other):
            self.assertEqual(["one", "two"], bodies(receiver.wait(2)))

    def test_durable_subscription_stays(self):
        client = self.connect()
        name = f"sub-{uuid.uuid4().hex[:8]}"
        connection = self.connect(container=named(name))
        receiver = Receiver(connection, self.queue, name=name, options=Durable())
        receiver.detach()
        connection.close()
        sender = client.create_sender(self.queue, options=Capability("topic"))
        sender.send(Message(body="meanwhile", durable=True))
        connection = self.connect(container=named(name))
        receiver = Receiver(connection, self.queue, name=name, options=Durable())
        self.assertEqual(["meanwhile"], bodies(receiver.drain(10, Delivery.ACCEPTED)))
        receiver.close()


class Dynamic(Scenario):
    def test_dynamic_node_ends_with_its_link(self):
        connection = self.connect()
        receiver = Receiver(connection, None, dynamic=True)
        address = receiver.link.remote_source.address
        self.assertTrue(address)
        other = self.connect()
        other.create_sender(address).send(Message(body="reply"))
        self.assertEqual(["reply"], bodies(receiver.wait(1)))

    def test_dynamic_nodes_have_own_names(self):
        connection = self.connect()
        nodes = [Receiver(connection, None, dynamic=True) for _ in range(5)]
        self.assertEqual(5, len({node.link.remote_source.address for node in nodes}))

    def test_dynamic_target(self):
        connection = self.connect()
        link = connection.conn.session()
        link.open()
        link = link.sender("dynamic-target")
        link.target.dynamic = True
        link.open()
        connection.wait(lambda: link.state & Endpoint.REMOTE_ACTIVE and link.credit > 0)
        address = link.remote_target.address
        self.assertTrue(address)
        link.send(Message(body="hello"))
        self.assertEqual(["hello"], bodies(Receiver(connection, address).wait(1)))


class InTransactions(Scenario):
    def setUp(self):
        super().setUp()
        self.connection = self.connect()
        self.transactions = Transactions(self.connection)

    def test_commit_shows_sent_messages(self):
        sender = self.connection.create_sender(self.queue)
        transaction = self.transactions.declare()
        for body in ("one", "two"):
            send_in(self.connection, sender, transaction, body)
        self.assertEqual([], self.left())
        self.assertEqual(Delivery.ACCEPTED, self.transactions.discharge(transaction))
        self.assertEqual(["one", "two"], self.left())

    def test_rollback_undoes_sent_messages(self):
        sender = self.connection.create_sender(self.queue)
        transaction = self.transactions.declare()
        send_in(self.connection, sender, transaction, "undone")
        self.assertEqual(Delivery.ACCEPTED, self.transactions.discharge(transaction, fail=True))
        self.assertEqual([], self.left())

    def test_commit_removes_accepted_messages(self):
        self.send("one", "two")
        transaction = self.transactions.declare()
        receiver = Receiver(self.connection, self.queue)
        [(_, delivery)] = receiver.wait(1)
        accept_in(delivery, transaction)
        self.assertEqual(Delivery.ACCEPTED, self.transactions.discharge(transaction))
        receiver.close()
        self.assertEqual(["two"], self.left())

    def test_rollback_returns_accepted_messages(self):
        self.send("one", "two")
        transaction = self.transactions.declare()
        receiver = Receiver(self.connection, self.queue)
        [(_, delivery)] = receiver.wait(1)
        accept_in(delivery, transaction)
        self.transactions.discharge(transaction, fail=True)
        receiver.close()
        self.assertEqual(["one", "two"], self.left())

    def test_several_transactions_at_once(self):
        sender = self.connection.create_sender(self.queue)
        one, other = self.transactions.declare(), self.transactions.declare()
        self.assertNotEqual(one, other)
        send_in(self.connection, sender, one, "one")
        send_in(self.connection, sender, other, "other")
        self.transactions.discharge(other)
        self.assertEqual(["other"], self.left())
        self.transactions.discharge(one)
        self.assertEqual(["one"], self.left())

    def test_unknown_transaction_is_refused(self):
        self.transactions.discharge(self.transactions.declare())
        try:
            state = self.transactions.discharge(b"unknown")
        except (LinkDetached, ProtonException):
            return
        self.assertEqual(Delivery.REJECTED, state)

    def test_lost_connection_undoes_its_transaction(self):
        self.send("one")
        transaction = self.transactions.declare()
        sender = self.connection.create_sender(self.queue + "-target")
        send_in(self.connection, sender, transaction, "undone")
        [(_, delivery)] = Receiver(self.connection, self.queue).wait(1)
        accept_in(delivery, transaction)
        flush(self.connection)
        self.connection.close()
        self.assertEqual(["one"], self.left())
        self.queue += "-target"
        self.assertEqual([], self.left())


class Connecting(Scenario):
    def check(self, **options):
        connection = self.connect(**options)
        connection.create_sender(self.queue).send(Message(body="hello"))
        self.assertEqual(["hello"], self.left())

    def test_anonymous(self):
        self.check(allowed_mechs="ANONYMOUS")

    def test_plain(self):
        self.check(allowed_mechs="PLAIN", user="guest", password="guest",
                   allow_insecure_mechs=True)

    def test_without_sasl(self):
        self.check(sasl_enabled=False)

    def test_quiet_connection_stays(self):
        connection = self.connect(heartbeat=1)
        receiver = Receiver(connection, self.queue)
        # Nothing comes for longer than both ends' patience; the broker's clock ends it.
        aside = self.connect()
        message = Message(body="later")
        message.annotations = {symbol("x-opt-delivery-delay"): ulong(4000)}
        aside.create_sender(self.queue).send(message)
        self.assertEqual(["later"], bodies(receiver.wait(1)))
        self.assertTrue(connection.conn.state & Endpoint.REMOTE_ACTIVE)

    def test_offered_capabilities(self):
        connection = self.connect()
        offered = connection.conn.remote_offered_capabilities
        self.assertIn(symbol("ANONYMOUS-RELAY"), list(capabilities(offered)))


def capabilities(offered):
    """One symbol or many, as the peer wrote it."""
    if isinstance(offered, Data):
        offered = offered.get_object()
    elements = getattr(offered, "elements", None)
    return elements if elements is not None else offered


def named(container_id):
    container = Container()
    container.container_id = container_id
    return container
