#!/usr/bin/env python3
"""HAProxy's `option httpchk` without arguments asks OPTIONS / by HTTP/1.0, without a Host.

Reports: phpmyadmin/docker#126, standardnotes/server#1038, haproxytech/kubernetes-ingress#429: the
server is held for dead. Right: 2xx with Allow (RFC 9110, 9.3.7), for every path that exists."""

from dlib import *

CONFIG = '''
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
frontend f
  bind 127.0.0.1:{front}
  default_backend b
backend b
  option httpchk
  server d 127.0.0.1:{http} check inter 200ms fall 1 rise 1
'''

s = Server()
r = request(s, 'OPTIONS / HTTP/1.0\r\n\r\n')
check('OPTIONS / is answered with 2xx', r[9:10] == '2', r.split('\r\n')[0])
check('... and says Allow', 'allow:' in r.lower(), r)
for path in ('*', '/queues', '/queues/q/messages', '/leases/1-0000000000000000', '/transactions'):
    r = request(s, f'OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    check(f'OPTIONS {path} is answered with 2xx', r[9:10] == '2', r.split('\r\n')[0])
    check('... and says Allow with OPTIONS', 'options' in r.lower().split('allow:')[-1], r)
preflight = 'Origin: http://evil.example\r\nAccess-Control-Request-Method: DELETE\r\n'
r = request(s, f'OPTIONS /queues/q HTTP/1.1\r\nHost: localhost\r\n{preflight}\r\n')
check('no other site is let in', r[9:12] == '403' and 'access-control' not in r.lower(), r)

haproxy = shutil.which('haproxy', path=os.environ['PATH'] + ':/usr/sbin')
if haproxy:
    d, front = tempfile.mkdtemp(), free_port()
    with open(d + '/c', 'w') as f:
        f.write(CONFIG.format(front=front, http=s.ports['http']))
    p = subprocess.Popen([haproxy, '-f', d + '/c'], stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        c = http.client.HTTPConnection('127.0.0.1', front, timeout=5)
        c.request('GET', '/health')
        check('HAProxy holds it for alive', c.getresponse().status == 200)
    finally:
        p.terminate()
        p.wait()
        shutil.rmtree(d)
else:
    note('no haproxy here')
done()
