"""Operators see figures while the disk of the log hangs.

An audit: `/metrics` and `/queues` did not answer while the disk hung, and `/journal` told of what
was not durable yet. Here the broker's file system is frozen, as a lost network disk is. Right: they
answer with the latest durable figures and their age; what is not durable is not told; after the
thaw all goes on.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from dlib import *

if os.getuid() != 0 or not all(map(shutil.which, ('mkfs.ext4', 'fsfreeze', 'mount'))):
    print('SKIP needs root, mkfs.ext4, mount and fsfreeze')
    sys.exit(77)

folder = tempfile.mkdtemp(prefix='dunlin-frozen-')
image, at = os.path.join(folder, 'image'), os.path.join(folder, 'at')
os.mkdir(at)
with open(image, 'wb') as file:
    file.truncate(1 << 30)


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


made = run('mkfs.ext4', '-q', '-F', image)
mounted = run('mount', '-o', 'loop', image, at) if made.returncode == 0 else made
if mounted.returncode != 0:
    shutil.rmtree(folder)
    print('SKIP no loop devices here:', mounted.stdout.decode(errors='replace')[-200:])
    sys.exit(77)

s, is_frozen = None, False
try:
    s = Server('--disk-limit', '300M', data=os.path.join(at, 'data'), protocols=('http',))
    check('a message is stored', s.http('POST', '/queues/a/messages', b'm')[0] == 201)
    before = json.loads(s.http('GET', '/journal')[2])
    check('the journal tells its files', len(before['segments']) > 0 and before['age_millis'] == 0)
    wait_until = time.monotonic() + 20
    while time.monotonic() < wait_until:
        # A sample that has the message: it is taken once a second.
        time.sleep(2.5)
        if json.loads(s.http('GET', '/queues/a')[2])['ready'] == 1:
            break
    is_frozen = run('fsfreeze', '-f', at).returncode == 0
    check('the disk hangs', is_frozen)
    answers = []
    send = lambda: answers.append(s.http('POST', '/queues/b/messages', b'n', timeout=100)[0])
    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(1)

    status, _, text = s.http('GET', '/queues', timeout=20)
    page = json.loads(text)
    names = [queue['name'] for queue in page.get('queues', [])]
    check('queues are told, without what is not durable',
          status == 200 and 'a' in names and 'b' not in names, text)
    check('with their age', page.get('age_millis', 0) > 0, text)
    status, _, text = s.http('GET', '/queues/a', timeout=20)
    check('one queue too', status == 200 and json.loads(text)['age_millis'] > 0, text)
    status, _, text = s.http('GET', '/queues/b', timeout=20)
    check('of others it is said why not', status == 503 and b'log-hangs' in text, text)
    status, _, text = s.http('GET', '/metrics', timeout=20)
    is_told = b'queue="a",state="ready"} 1\n' in text
    check('metrics are told', status == 200 and is_told, text[-300:])
    age = text.split(b'\ndunlin_queue_figures_age_seconds ')[-1].split(b'\n')[0]
    check('with their age', float(age) > 0, age)
    status, _, text = s.http('GET', '/journal', timeout=20)
    told = json.loads(text)
    check('the journal tells what it told', told.get('segments') == before['segments'], text)
    check('with its age', told.get('age_millis', 0) > 0, text)
    check('nothing was confirmed', answers == [], answers)

    is_frozen = run('fsfreeze', '-u', at).returncode != 0
    sender.join(60)
    check('what was sent is confirmed after the thaw', answers == [201], answers)
    page = json.loads(s.http('GET', '/queues')[2])
    names = [queue['name'] for queue in page['queues']]
    check('and told', 'b' in names and page['age_millis'] == 0, page)
finally:
    if is_frozen:
        run('fsfreeze', '-u', at)
    if s is not None:
        s.stop()
    run('umount', at)
    shutil.rmtree(folder, ignore_errors=True)
done()
