#!/usr/bin/env python3
"""apache/artemis PR 2872 (federation-name, hyphenated_props:), jakartaee/platform-tck#2652,
datalust/seq-tickets#359: properties have names with hyphens, and no selector can say them.
HTTP headers nearly always have: docs/protocols/http.md promises of Dunlin-Property-NAME "a
property, which selectors and AMQP consumers see". Dunlin: order-id = 5 is read as order minus id,
matches nothing and says nothing; "order-id" in quotes is refused.
Right: some way to say it: SQL-92's quoted identifier ("order-id" = 5), or Artemis' prefix
(hyphenated_props:order-id = 5, its HyphenatedParser.jj). Either satisfies this test. Strict JMS
selectors stay what they are: a double quote and a colon are no characters of theirs."""

from dlib import *
from urllib.parse import quote

s = Server()
s.http('POST', '/queues/q/messages', b'five', {'Dunlin-Property-Order-Id': '5'})
s.http('POST', '/queues/q/messages', b'six', {'Dunlin-Property-Order-Id': '6'})


def browse(selector):
    r = s.http('GET', '/queues/q/messages?browse&selector=' + quote(selector))
    return [m['body'] for m in json.loads(r[2])['messages']] if r[0] == 200 else r[2].decode()[:120]


ways = ('"order-id" = %d', 'hyphenated_props:order-id = %d')
way = next((w for w in ways if browse(w % 5) == ['five']), None)
check('a selector finds it by HTTP', way is not None, [browse(w % 5) for w in ways])


def take(selector):
    a = s.amqp()
    h, f = a.attach(
        True,
        source=SOURCE(
            'q', filter={Sym('sel'): D(Sym('apache.org:selector-filter:string'), selector)}
        ),
        target=TARGET(None),
    )
    if a.expect('detach', timeout=0.5) is not None:
        return 'refused'
    a.flow(h, 1)
    g = a.take(1)
    return sections(g[1]).get('data') if g else 'nothing'


check('... and by AMQP', any(take(w % 6) == b'six' for w in ways), [take(w % 6) for w in ways])
check('an unquoted hyphen is still a minus', browse('order-id = 5') == [], browse('order-id = 5'))
done()
