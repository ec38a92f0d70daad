"""The static binary of a release in an empty root, as a container from scratch runs it.

BINARY is the binary. It needs root, for chroot and another user. Listeners are on loopback."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PACKAGING = Path(__file__).resolve().parents[2] / 'packaging'
BINARY = os.environ['BINARY']
OWNER = 65532


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def variables():
    """Those of the Dockerfile."""
    lines = (PACKAGING / 'container/Dockerfile').read_text().replace('\\\n', ' ').splitlines()
    words = next(line for line in lines if line.startswith('ENV ')).split()[1:]
    return dict(word.split('=', 1) for word in words)


class Container(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix='dunlin-root-'))
        self.addCleanup(shutil.rmtree, self.root)
        os.chmod(self.root, 0o755)
        for folder in ('proc', 'data', 'etc/dunlin/tls'):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(BINARY, self.root / 'dunlin')
        tls, users = self.root / 'etc/dunlin/tls', self.root / 'etc/dunlin/users.toml'
        make = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
        make += ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
        make += ['-keyout', tls / 'tls.key', '-out', tls / 'tls.crt']
        subprocess.run(make, check=True, capture_output=True)
        add = [BINARY, 'user', 'add', 'ann', '--stdin', '--allow', 'send,receive *']
        password = b'correct horse battery'
        subprocess.run(add + ['--users', users], input=password, check=True)
        for path in (self.root / 'data', tls / 'tls.key', users):
            os.chown(path, OWNER, OWNER)
        os.chmod(self.root / 'data', 0o700)
        self.ports = {name: free_port() for name in ('http', 'rediss')}
        listen = ','.join(f'{name}=127.0.0.1:{port}' for name, port in self.ports.items())
        self.env = variables() | {'DUNLIN_LISTEN': listen}

    def inside(self, *words):
        """A command in the root, which has /proc and nothing of this machine."""
        shell = f'mount --bind /proc {self.root}/proc && exec chroot --userspec={OWNER}:{OWNER} '
        return ['unshare', '--mount', 'sh', '-c', f'{shell} {self.root} {" ".join(words)}']

    def start(self):
        command = self.inside('/dunlin', 'serve')
        server = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        for line in server.stdout:
            if line == b'ready\n':
                return server
        self.fail('the broker does not become ready')

    def health(self):
        url = f'http://127.0.0.1:{self.ports["http"]}'
        env = self.env | {'DUNLIN_URL': url}
        return subprocess.run(self.inside('/dunlin', 'health', '--ready'), env=env).returncode

    def test_binary_needs_no_library(self):
        told = subprocess.run(['ldd', BINARY], capture_output=True, text=True)
        told = told.stdout + told.stderr
        self.assertTrue('statically linked' in told or 'not a dynamic' in told, told)

    def test_serves_checks_and_stops(self):
        server = self.start()
        self.assertEqual(self.health(), 0)
        said = b'AUTH ann "correct horse battery"\r\nRPUSH jobs x\r\n'
        client = ['openssl', 's_client', '-quiet', '-connect', f'127.0.0.1:{self.ports["rediss"]}']
        client = subprocess.Popen(
            client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        client.stdin.write(said)
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), b'+OK\r\n')
        self.assertEqual(client.stdout.readline(), b':1\r\n')
        client.kill()
        client.communicate()
        owner = {path.stat().st_uid for path in (self.root / 'data').iterdir()}
        self.assertEqual(owner, {OWNER})
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(30), 0)
        again = self.start()
        self.assertEqual(self.health(), 0)
        again.send_signal(signal.SIGTERM)
        self.assertEqual(again.wait(30), 0)
        self.assertNotEqual(self.health(), 0)

    def test_names_resolve(self):
        # The resolver of a static libc reads files alone.
        env = self.env | {'DUNLIN_LISTEN': f'http=localhost:{free_port()}'}
        check = self.inside('/dunlin', 'config', 'check')
        told = subprocess.run(check, env=env, capture_output=True, text=True)
        self.assertEqual((told.returncode, told.stdout), (0, 'sound: 1 listeners\n'), told.stderr)


class Kubernetes(unittest.TestCase):
    def test_example_uses_what_there_is(self):
        text = (PACKAGING / 'kubernetes/dunlin.yaml').read_text()
        for name, value in variables().items():
            if name != 'DUNLIN_DATA' and value.startswith('/etc/dunlin'):
                self.assertIn(str(Path(value).parent), text, name)
        for kind in ('StatefulSet', 'PodDisruptionBudget', 'Service'):
            self.assertIn(f'kind: {kind}', text)
        for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
            self.assertIn(probe, text)


if __name__ == '__main__':
    unittest.main()
