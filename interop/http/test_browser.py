"""What pages do in Chromium: other sites' pages, and messages that are pages.

Each test starts a broker of its own (DUNLIN is the binary), serves pages of other sites from ports
of its own, and looks at what the broker holds afterwards."""

import glob
import http.client
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from playwright.sync_api import sync_playwright

DUNLIN = os.environ.get("DUNLIN", "dunlin")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-sync", "--no-first-run",
    # A name that its owner points at the broker, and names of other sites.
    "--host-resolver-rules=MAP rebound.example 127.0.0.1, MAP evil.example 127.0.0.1",
]


def own_address():
    """An address of this machine that is not on loopback; `None` if it has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Nothing is sent.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    except OSError:
        # It has no default route.
        words = subprocess.run(["hostname", "-I"], stdout=subprocess.PIPE, check=True).stdout
        addresses = [word for word in words.decode().split() if ":" not in word]
        return addresses[0] if addresses else None


class Broker:
    """A broker in memory, on loopback or on all addresses."""

    def __init__(self, *options, address="127.0.0.1"):
        command = [DUNLIN, "serve", "--store", "none", "--listen", f"http={address}:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in self.process.stdout:
            words = line.decode().split()
            if words[:2] == ["listening", "http"]:
                self.port = int(words[2].rsplit(":", 1)[1])
            if words == ["ready"]:
                return
        raise RuntimeError("the broker did not start")

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, text

    def queue(self, name):
        """How many messages are ready, leased and stored so far; `None` without such a queue."""
        status, text = self.ask("GET", f"/queues/{name}")
        if status == 404:
            return None
        found = json.loads(text)
        return found["ready"], found["leased"], found["stored_total"]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Site:
    """A web server with one page."""

    def __init__(self, page):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


# All that a page can send to another site without its consent, and some that needs it.
ATTACK = """<!doctype html><title>attack</title><body><script>
const base = BASE, messages = base + '/queues/q/messages';
const done = [];
function element(name, attribute, url) {
  const it = document.createElement(name);
  done.push(new Promise(end => { it.onload = it.onerror = end; setTimeout(end, 1500); }));
  it[attribute] = url;
  if (name == 'link') it.rel = 'stylesheet';
  document.body.append(it);
}
for (const name of ['img', 'script', 'iframe', 'embed', 'audio', 'video'])
  element(name, 'src', messages + '?' + (name == 'img' ? 'max=1' : 'wait=10ms'));
element('link', 'href', messages);
element('object', 'data', messages);
const attempt = (path, options) =>
  done.push(fetch(base + path, options).then(it => it.text()).then(
    text => { document.title += ' read:' + path; }, () => {}));
attempt('/queues/q/messages', { mode: 'cors' });
attempt('/queues/q/messages?browse', { mode: 'cors' });
attempt('/queues/q', { mode: 'cors', method: 'DELETE' });
attempt('/queues/q/messages', { mode: 'cors', headers: { 'Dunlin-Client': 'x' } });
attempt('/queues/q/policy', { mode: 'cors', method: 'PUT', body: '{"max_messages":1}' });
for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
  for (const path of ['/queues/q/messages', '/queues/q/purge', '/topics/t/messages'])
    done.push(fetch(base + path, { mode: 'no-cors', method: 'POST', body: 'forged',
      headers: { 'Content-Type': type } }).catch(() => {}));
done.push(fetch(base + '/transactions', { mode: 'no-cors', method: 'POST',
  body: '{"send":[{"queue":"q","body":"forged"}]}' }).catch(() => {}));
navigator.sendBeacon(messages, 'forged');
const events = new EventSource(base + '/topics/t/events');
events.onopen = () => { document.title += ' follows'; };
try { new WebSocket(messages.replace('http', 'ws')); } catch (e) {}
for (const encoding of ['text/plain', 'application/x-www-form-urlencoded',
                        'multipart/form-data']) {
  const frame = document.createElement('iframe'), form = document.createElement('form');
  frame.name = encoding;
  Object.assign(form, { action: messages, method: 'post', enctype: encoding, target: encoding });
  form.innerHTML = '<input name=forged value=forged>';
  document.body.append(frame, form);
  form.submit();
}
const get = document.createElement('form'), frame = document.createElement('iframe');
frame.name = 'get';
Object.assign(get, { action: messages, method: 'get', target: 'get' });
document.body.append(frame, get);
get.submit();
Promise.allSettled(done).then(() => setTimeout(() => { document.title += ' done'; }, 1500));
</script>"""


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        cls.downloads = tempfile.TemporaryDirectory()
        cls.browser = cls.playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, downloads_path=cls.downloads.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.downloads.cleanup()

    def broker(self, *options, **more):
        broker = Broker(*options, **more)
        self.addCleanup(broker.stop)
        return broker

    def site(self, page):
        site = Site(page)
        self.addCleanup(site.stop)
        return site

    def page(self):
        context = self.browser.new_context(accept_downloads=True)
        self.addCleanup(context.close)
        return context.new_page()

    def attack(self, site_url, base, broker):
        """Lets a page of another site do what it can; the title says what it could read."""
        broker.ask("POST", "/queues/q/messages", b"secret")
        page = self.page()
        page.goto(site_url)
        page.wait_for_function("document.title.endsWith(' done')", timeout=30_000)
        self.assertEqual(page.title(), "attack done", base)
        self.assertEqual(broker.queue("q"), (1, 0, 1), base)
        rules = json.loads(broker.ask("GET", "/queues/q/policy")[1])["from"]
        self.assertNotIn("own", rules.values(), base)

    def test_other_sites_do_nothing_on_loopback(self):
        broker = self.broker()
        for host in ("127.0.0.1", "localhost"):
            base = f"http://{host}:{broker.port}"
            site = self.site(ATTACK.replace("BASE", json.dumps(base)))
            for name in ("127.0.0.1", "localhost", "evil.example"):
                self.attack(f"http://{name}:{site.port}/", base, broker)
                broker.ask("DELETE", "/queues/q")
                broker.ask("POST", "/queues/q/purge")

    def test_other_sites_do_nothing_off_loopback(self):
        address = own_address()
        if address is None:
            self.skipTest("this machine has no address but loopback")
        broker = self.broker("--insecure", address="0.0.0.0")
        base = f"http://{address}:{broker.port}"
        site = self.site(ATTACK.replace("BASE", json.dumps(base)))
        # Browsers may ask people before pages reach private addresses: here nobody is asked.
        self.attack(f"http://evil.example:{site.port}/", base, broker)

    def test_rebound_names_are_refused(self):
        for options in ((), ("--insecure", "--allowed-hosts", "broker.example")):
            broker = self.broker(*options)
            broker.ask("POST", "/queues/q/messages", b"secret")
            page = self.page()
            answer = page.goto(f"http://rebound.example:{broker.port}/queues/q/messages?browse")
            self.assertEqual(answer.status, 403)
            self.assertNotIn("secret", page.content())
            self.assertEqual(broker.queue("q"), (1, 0, 1))

    def test_message_is_saved_not_run(self):
        broker = self.broker()
        base = f"http://127.0.0.1:{broker.port}"
        script = "fetch('/queues/victim', {method: 'DELETE'})"
        bodies = {
            "text/html": f"<script>{script}</script>",
            "application/xhtml+xml": '<html xmlns="http://www.w3.org/1999/xhtml">'
                                     f"<script>{script}</script></html>",
            "image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg"><script>{script}</script>'
                             "</svg>",
            "text/xml": '<?xml version="1.0"?><x:script xmlns:x="http://www.w3.org/1999/xhtml">'
                        f"{script}</x:script>",
            "text/plain": f"<script>{script}</script>",
        }
        for kind, body in bodies.items():
            broker.ask("POST", "/queues/victim/messages", b"m")
            for _ in range(2):
                broker.ask("POST", "/queues/q/messages", body.encode(), {"Content-Type": kind})
            page = self.page()
            with page.expect_download() as download:
                try:
                    page.goto(f"{base}/queues/q/messages")
                except Exception as error:
                    self.assertIn("Download", str(error))
            with open(download.value.path(), "rb") as saved:
                self.assertEqual(saved.read(), body.encode(), kind)
            # In a frame of the broker's own index it does not run either.
            page.goto(f"{base}/health")
            page.evaluate(
                "url => { try { const frame = document.createElement('iframe'); frame.src = url;"
                " document.body.append(frame); } catch (error) {} }",
                f"{base}/queues/q/messages?browse")
            page.wait_for_timeout(300)
            self.assertEqual(broker.queue("victim")[0] >= 1, True, kind)
            broker.ask("POST", "/queues/q/purge")

    def test_errors_that_echo_do_not_run(self):
        broker = self.broker()
        broker.ask("POST", "/queues/victim/messages", b"m")
        script = "%3Cscript%3Efetch('/queues/victim',{method:'DELETE'})%3C/script%3E"
        for path in (f"/queues/{script}", f"/queues?{script}=1",
                     f"/queues/q/messages?wait={script}", f"/topics/{script}/nothing"):
            page = self.page()
            answer = page.goto(f"http://127.0.0.1:{broker.port}{path}")
            self.assertIn(answer.status, (400, 404), path)
            page.wait_for_timeout(200)
            self.assertEqual(page.evaluate("document.scripts.length"), 0, path)
        self.assertEqual(broker.queue("victim")[0], 1)


if __name__ == "__main__":
    unittest.main()
