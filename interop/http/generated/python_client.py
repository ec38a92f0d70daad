"""What a client that openapi-generator made for Python does; the argument is the URL."""

import sys
import uuid

import openapi_client
from openapi_client import (
    ApiClient, Configuration, MessagesApi, MessageToSend, OperatorsApi, OwnPolicy, PolicyChange,
    Settlement, Transaction)

queue = f"python-{uuid.uuid4()}"
with ApiClient(Configuration(host=sys.argv[1])) as client:
    messages, operators = MessagesApi(client), OperatorsApi(client)
    stored = messages.send(
        queue, b"hello", dunlin_priority=9, dunlin_properties='{"Color":"red","n":12}')
    page = messages.receive(queue, lease="30s")
    [message] = page.messages
    assert (message.id, message.body, message.priority) == (stored.message, "hello", 9), message
    assert message.properties == {"Color": "red", "n": 12}, message
    assert message.created.tzinfo is not None and message.expires is None, message
    messages.accept(message.lease)
    assert messages.receive(queue).messages == []
    try:
        messages.accept(message.lease)
        raise AssertionError("a lease was settled twice")
    except openapi_client.ApiException as error:
        assert error.status == 410, error
    messages.transact(Transaction(send=[MessageToSend(queue=queue, body=it) for it in "ab"]))
    [first] = messages.receive(queue, max=1).messages
    done = messages.transact(Transaction(
        send=[MessageToSend(queue=queue, body="c", properties={"step": 1, "last": None})],
        settle=[Settlement(lease=first.lease)]))
    assert (done.sent, done.settled) == (1, 1), done
    stated = operators.put_policy(queue, OwnPolicy(max_messages=7, when_full="reject"))
    assert (stated.policy.max_messages, stated.var_from.max_messages) == (7, "own"), stated
    stated = operators.patch_policy(queue, PolicyChange(max_messages=None))
    assert (stated.policy.max_messages, stated.policy.when_full) == (None, "reject"), stated
    found = operators.queue(queue)
    assert found.ready == 2 and found.policy.max_messages is None, found
    assert queue in [it.name for it in operators.queues(max=1000).queues]
    browsed = messages.receive(queue, browse=True)
    assert [it.body for it in browsed.messages] == ["b", "c"], browsed
    assert operators.purge(queue).deleted == 2
