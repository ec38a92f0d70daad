#!/usr/bin/env python3
"""Server-sent events through a stock nginx, which buffers answers of what it proxies.

Reports: nginx/nginx#1505, fanout/django-eventstream#37, owncloud/core#9924: events never reach the
reader. Right: the answer says X-Accel-Buffering: no, an event arrives within 3 s, and a stream of
which nothing is published outlives the proxy's 60 s, since comments come every 15 s."""

import threading

from dlib import *

CONFIG = '''
daemon off; pid {d}/pid; error_log {d}/err; events {{}}
http {{
  access_log off; {temp}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{http}; }} }}
}}
'''

s = Server()
line, head = header_of(s, '/topics/news/events')
check('the header X-Accel-Buffering is no', head.get('x-accel-buffering') == 'no', head)
check('no proxy may change the stream', 'no-transform' in head.get('cache-control', ''), head)

nginx = shutil.which('nginx', path=os.environ['PATH'] + ':/usr/sbin')
if not nginx:
    print('SKIP needs nginx (apt install nginx)')
    sys.exit(77)
d, port = tempfile.mkdtemp(), free_port()
temp = ' '.join(
    f'{n}_temp_path {d}/{n};' for n in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
)
with open(d + '/c', 'w') as f:
    f.write(CONFIG.format(d=d, temp=temp, port=port, http=s.ports['http']))
p = subprocess.Popen([nginx, '-c', d + '/c', '-p', d], stderr=subprocess.DEVNULL)
try:
    for version in ('1.0', '1.1'):
        c = None
        while c is None:
            try:
                c = socket.create_connection(('127.0.0.1', port))
            except OSError:
                time.sleep(0.05)
        c.settimeout(4)
        c.sendall(f'GET /topics/news/events HTTP/{version}\r\nHost: localhost\r\n\r\n'.encode())
        threading.Timer(1, lambda: s.http('POST', '/topics/news/messages', b'hello')).start()
        out, end = b'', time.time() + 4
        try:
            while time.time() < end and b'hello' not in out:
                out += c.recv(4096)
        except TimeoutError:
            pass
        check(f'an event arrives through nginx, by HTTP/{version}', b'hello' in out, out[-80:])
        c.close()
finally:
    p.terminate()
    p.wait()
    shutil.rmtree(d)
done()
