#!/usr/bin/env python3
"""Requests without a Host, with two, or with one that is none.

RFC 9112, 3.2: such a request by HTTP/1.1 is answered 400. Proxies and servers that disagree about
whom a request is for let attackers smuggle requests. HTTP/1.0 needs no Host (health checks)."""

from dlib import *

s = Server()
for head, status in (
    ('GET /health HTTP/1.1\r\n', 400),
    ('GET http://localhost/health HTTP/1.1\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n', 400),
    ('GET /health HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: local host\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: evil.example@localhost\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: localhost:99999\r\n', 400),
    ('GET /health HTTP/1.1\r\nHost: evil.example\r\n', 403),
    ('GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n', 403),
    ('GET /health HTTP/1.0\r\n', 200),
    ('GET /health HTTP/1.1\r\nHost: \r\n', 200),
    ('GET /health HTTP/1.1\r\nHost: [::1]:80\r\n', 200),
):
    r = request(s, head + 'Connection: close\r\n\r\n')
    check(f'{head!r} is answered {status}', f' {status} ' in r[:15], r.split('\r\n')[0])
done()
