#!/usr/bin/env python3
"""Idle connections live longer than those of load balancers, which keep them for 60 s.

Reports: nodejs/node#20256 and #27363, growthbook/growthbook-proxy PR 135, medplum/medplum#2253: a
server that closes first loses requests on their way, 502, and a POST may or may not be stored.
Right: more than 60 s by default, and a setting of its own. Takes 70 s."""

from dlib import *

GET = b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'


def closed_after(c, most):
    """Seconds until the server closes, None where it does not within the time."""
    begin = time.time()
    c.settimeout(most)
    try:
        c.recv(10)
        return time.time() - begin
    except TimeoutError:
        return None


s = Server()
short = Server('--http-idle-timeout', '2s')
never = Server('--http-idle-timeout', 'never', '--half-sent-timeout', '1s')
patient, brief, lasting = [server.raw('http', 70) for server in (s, short, never)]
for c in (patient, brief, lasting):
    c.sendall(GET)
    c.recv(4096)
begin = time.time()
seen = closed_after(brief, 10)
check('--http-idle-timeout 2s closes after 2 s', seen is not None and 1.5 < seen < 4, seen)
check('--http-idle-timeout never does not', closed_after(lasting, 2) is None)
lasting.sendall(b'GET /hea')
seen = closed_after(lasting, 10)
check('a half sent request has its own time', seen is not None and seen < 4, seen)
seen = closed_after(patient, 66 - (time.time() - begin))
check('an idle connection is kept for more than 65 s', seen is None, seen)
patient.sendall(GET)
check('... and serves a request then', b' 200 ' in patient.recv(4096))
done()
