"""Clients that foreign generators make of the running server's description: HTTP_URL says where.

Each is generated, compiled where its language is, and does what `generated/` says."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

URL = os.environ.get("HTTP_URL", "http://127.0.0.1:8422")
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = sys.executable


def run(*command, where, **variables):
    done = subprocess.run(
        command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240,
        env={**os.environ, **variables})
    if done.returncode != 0:
        text = done.stdout.decode(errors="replace")[-4000:]
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{text}")


class Generated(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with urllib.request.urlopen(f"{URL}/openapi.json") as answer:
            with open(self.path("openapi.json"), "wb") as file:
                file.write(answer.read())

    def path(self, name):
        return os.path.join(self.folder, name)

    def take(self, name):
        """A program of ours beside the generated client."""
        shutil.copy(os.path.join(HERE, "generated", name), self.folder)

    def generate(self, language, *options):
        """By openapi-generator, which checks the description first."""
        jar = os.path.join(HERE, ".generator", "openapi-generator-cli.jar")
        run("java", "-jar", jar, "generate", "-i", "openapi.json", "-g", language, *options,
            where=self.folder)

    def test_python_of_openapi_generator(self):
        self.generate("python", "-o", "out")
        self.take("python_client.py")
        run(PYTHON, "python_client.py", URL, where=self.folder, PYTHONPATH=self.path("out"))

    def test_python_of_openapi_python_client(self):
        options = ["--meta", "none", "--output-path", "dunlin_client", "--fail-on-warning"]
        # Otherwise it wants a formatter, and warns.
        with open(self.path("config.yml"), "w", encoding="utf-8") as config:
            config.write("post_hooks: []\n")
        run(os.path.join(os.path.dirname(PYTHON), "openapi-python-client"), "generate", "--path",
            "openapi.json", "--config", "config.yml", *options, where=self.folder)
        self.take("openapi_python_client.py")
        run(PYTHON, "openapi_python_client.py", URL, where=self.folder)

    def test_go(self):
        self.generate("go", "-o", "dunlin", "--additional-properties",
                      "packageName=dunlin,withGoMod=false")
        self.take("main.go")
        with open(self.path("go.mod"), "w", encoding="utf-8") as module:
            module.write("module scenario\n\ngo 1.21\n")
        with open(self.path("body"), "wb") as body:
            body.write(b"hello")
        run("go", "vet", ".", "./dunlin", where=self.folder, GOFLAGS="-mod=mod")
        run("go", "run", ".", URL, "body", where=self.folder, GOFLAGS="-mod=mod")

    def test_typescript(self):
        self.generate("typescript-fetch", "-o", "dunlin")
        self.take("client.ts")
        tsc = os.path.join(HERE, "node_modules", ".bin", "tsc")
        run(tsc, "--strict", "--target", "es2022", "--module", "commonjs", "--lib", "es2022,dom",
            "--skipLibCheck", "--outDir", "js", "client.ts", where=self.folder)
        run("node", "js/client.js", URL, where=self.folder)


if __name__ == "__main__":
    unittest.main()
