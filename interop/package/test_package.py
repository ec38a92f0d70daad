"""The Debian package in a root of its own, and the broker under the limits of its unit.

Needs root, mmdebstrap, systemd-analyze and python3-seccomp. PACKAGE is the .deb. ROOT_IMAGE is the
tar file of a bare Debian, which the test makes if it is missing.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

PACKAGE = pathlib.Path(os.environ["PACKAGE"]).absolute()
ROOT_IMAGE = pathlib.Path(os.environ.get("ROOT_IMAGE", "/tmp/dunlin-package-root.tar"))
UNIT = pathlib.Path(__file__).parents[2] / "packaging/dunlin.service"
EXPOSURE_MAX = 2.0
BINARY_BYTES_MAX = 9_000_000
LISTEN = {"amqp": 45672, "beanstalkd": 41300, "redis": 46379, "http": 48422}


def output(*command, **options):
    """Standard output of a command that has to succeed."""
    options = {"stderr": subprocess.PIPE, **options}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def unpacked(folder):
    """The files of the package in a folder."""
    output("dpkg-deb", "--extract", PACKAGE, folder)
    return pathlib.Path(folder)


def listeners(host="127.0.0.1"):
    return [f"--listen={name}={host}:{port}" for name, port in LISTEN.items()]


class Broker:
    """A broker that is ready; `begin` is the command in front of `dunlin serve`."""

    def __init__(self, begin, *options):
        command = [*begin, "serve", *options, *listeners()]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line == "ready\n":
                return
        raise AssertionError(f"{command} ended with {self.process.wait()}")

    def stop(self):
        self.process.terminate()
        self.process.stdout.close()
        return self.process.wait(60)


def say(protocol, sent, expected):
    """Sends bytes and waits for the expected ones."""
    with socket.create_connection(("127.0.0.1", LISTEN[protocol]), 30) as peer:
        peer.settimeout(30)
        peer.sendall(sent)
        seen = b""
        while expected not in seen:
            more = peer.recv(65536)
            if not more:
                raise AssertionError(f"{protocol} closed after {seen!r}")
            seen += more


def speak_all():
    """Each protocol stores something, and takes it again where it can."""
    for _ in range(50):
        put = b"put 0 0 10 5\r\nhello\r\nreserve\r\nstats\r\n"
        say("beanstalkd", put, b"current-jobs-reserved: 1")
        say("redis", b"LPUSH list x\r\nBRPOP list 1\r\nSET key value\r\nINFO\r\n", b"redis_version")
        large = b"POST /queues/large/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000"
        say("http", large + b"\r\n\r\n" + b"x" * 300_000, b"201")
    say("http", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"dunlin_connections")
    say("amqp", b"AMQP\x00\x01\x00\x00\x00\x00\x00\x10\x02\x00\x00\x00"
        b"\x00S\x10\xc0\x03\x01\xa1\x00", b"AMQP\x00\x01\x00\x00")


class Unit(unittest.TestCase):
    def test_systemd_finds_no_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            root = unpacked(folder)
            unit = root / "usr/lib/systemd/system/dunlin.service"
            if not unit.exists():
                unit = root / "lib/systemd/system/dunlin.service"
            self.assertEqual(unit.read_text(), UNIT.read_text())
            # The unit names the binary where the package puts it.
            text = unit.read_text().replace("/usr/bin/dunlin", f"{folder}/usr/bin/dunlin")
            text = re.sub("Documentation=.*\n", "", text)
            copy = root / "dunlin.service"
            copy.write_text(text)
            verify = ["systemd-analyze", "verify", "--man=no", copy]
            complaints = output(*verify, stderr=subprocess.STDOUT)
            self.assertEqual(complaints, "")

    def test_binary_is_small(self):
        with tempfile.TemporaryDirectory() as folder:
            binary = unpacked(folder) / "usr/bin/dunlin"
            self.assertLessEqual(binary.stat().st_size, BINARY_BYTES_MAX)

    def test_exposure_is_low(self):
        report = output("systemd-analyze", "security", "--offline=true", "--no-pager", UNIT)
        exposure = float(re.search(r"exposure level for .*?: ([\d.]+)", report)[1])
        self.assertLessEqual(exposure, EXPOSURE_MAX)

    def test_broker_runs_under_its_limits(self):
        """The limits of the unit that need no systemd: its list of system calls, no capability, no
        new privileges, no core, its address families."""
        with tempfile.TemporaryDirectory() as folder:
            root = unpacked(folder)
            root.chmod(0o755)
            data = root / "data"
            data.mkdir(0o700)
            shutil.chown(data, "nobody")
            limits = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                      "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
                      "prlimit", "--core=0"]
            binary = root / "usr/bin/dunlin"
            readable = pathlib.Path(folder, "confine")
            shutil.copytree(pathlib.Path(__file__).parent, readable)
            confined = ["/usr/bin/python3", readable / "confine.py", readable / "dunlin.service"]
            shutil.copy(UNIT, readable)
            broker = Broker([*limits, *confined, binary], "--data", data)
            status = pathlib.Path(f"/proc/{broker.process.pid}/status").read_text()
            self.assertIn("Seccomp:\t2", status)
            self.assertIn("CapBnd:\t0000000000000000", status)
            speak_all()
            self.assertEqual(broker.stop(), 0)


class Package(unittest.TestCase):
    """Installs, upgrades, removes and purges in a bare Debian."""

    def setUp(self):
        if not ROOT_IMAGE.exists():
            print("fetching a bare Debian")
            output("mmdebstrap", "--variant=essential", "--include=systemd-standalone-sysusers",
                   "bookworm", ROOT_IMAGE)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        output("tar", "--extract", "--directory", self.root, "--file", ROOT_IMAGE,
               "--exclude=./dev/*")
        self.root.chmod(0o755)
        # No service manager runs in there.
        policy = self.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        (self.root / "dev").mkdir(exist_ok=True)
        for name, numbers in (("null", "1 3"), ("urandom", "1 9"), ("random", "1 8")):
            device = self.root / "dev" / name
            output("mknod", "--mode=666", device, "c", *numbers.split())
        self.data = self.root / "var/lib/dunlin"
        self.conffile = self.root / "etc/dunlin/dunlin.toml"

    def inside(self, *command, **variables):
        return output("chroot", self.root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                                          **variables})

    def install(self, package):
        shutil.copy(package, self.root / "package.deb")
        return self.inside("dpkg", "--install", "/package.deb")

    def later(self):
        """The same package with a later version."""
        folder = self.root / "later"
        output("dpkg-deb", "--raw-extract", PACKAGE, folder)
        control = folder / "DEBIAN/control"
        text = re.sub(r"(?m)^Version: .*", "Version: 999.0.0-1", control.read_text())
        control.write_text(text)
        later = self.root / "later.deb"
        output("dpkg-deb", "-Znone", "--build", folder, later)
        return later

    def start(self):
        """As the unit does it, after systemd has made the directory."""
        if not self.data.exists():
            self.data.mkdir(0o700)
            shutil.chown(self.data, *self.account())
        begin = ["chroot", "--userspec=dunlin:dunlin", self.root, "/usr/bin/dunlin"]
        return Broker(begin, "--config", "/etc/dunlin/dunlin.toml", "--data", "/var/lib/dunlin")

    def account(self):
        entry = self.inside("getent", "passwd", "dunlin").split(":")
        return int(entry[2]), int(entry[3])

    def client(self, *words):
        url = f"http://127.0.0.1:{LISTEN['http']}"
        return self.inside("/usr/bin/dunlin", *words, DUNLIN_URL=url)

    def test_install_upgrade_purge(self):
        self.install(PACKAGE)
        self.assertGreater(self.account()[0], 0)
        wanted = "etc/systemd/system/multi-user.target.wants/dunlin.service"
        self.assertTrue((self.root / wanted).is_symlink(), "it starts at each boot")
        shell = self.inside("getent", "passwd", "dunlin").strip().rsplit(":", 1)[1]
        self.assertIn("nologin", shell)
        self.assertIn("dunlin.toml", self.inside("dpkg-query", "--show",
                                                 "--showformat=${Conffiles}", "dunlin"))
        for path in ("usr/share/man/man1/dunlin-serve.1.gz", "usr/share/man/man1/dunlin.1.gz",
                     "usr/share/bash-completion/completions/dunlin",
                     "usr/share/zsh/vendor-completions/_dunlin",
                     "usr/share/fish/vendor_completions.d/dunlin.fish",
                     "usr/share/doc/dunlin/copyright"):
            self.assertTrue((self.root / path).exists(), path)

        broker = self.start()
        self.assertEqual(self.client("health"), "ok\n")
        self.client("send", "mail", "kept")
        self.assertEqual(broker.stop(), 0)

        own = self.conffile.read_text() + 'dead-letter-queue = "dead"\n'
        self.conffile.write_text(own)
        self.install(self.later())
        self.assertEqual(self.conffile.read_text(), own, "an upgrade keeps the operator's file")
        broker = self.start()
        self.assertEqual(self.client("receive", "mail"), "kept\n")
        self.assertEqual(broker.stop(), 0)

        # Back to the earlier version, which has the same format of the journal.
        self.inside("dpkg", "--install", "--force-downgrade", "/package.deb")
        broker = self.start()
        self.client("send", "mail", "again")
        self.assertEqual(broker.stop(), 0)

        self.inside("dpkg", "--remove", "dunlin")
        self.assertEqual(self.conffile.read_text(), own, "a removal keeps the operator's file")
        self.inside("dpkg", "--purge", "dunlin")
        self.assertFalse(self.conffile.exists())
        self.assertTrue(any(self.data.iterdir()), "a purge keeps the messages")
        self.install(PACKAGE)
        broker = self.start()
        self.assertEqual(self.client("receive", "mail"), "again\n")
        self.assertEqual(broker.stop(), 0)
        self.inside("dpkg", "--purge", "dunlin", DUNLIN_PURGE_DATA="yes")
        self.assertFalse(self.data.exists(), "unless it is asked for")


if __name__ == "__main__":
    unittest.main()
