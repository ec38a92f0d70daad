"""Drain mode, which ends a server's use for producers: a server of its own, run last."""

import os
import signal
import unittest

import greenstalk
from server import ADDRESS, fresh_tube


class Draining(unittest.TestCase):
    def test_draining_server_refuses_only_puts(self):
        tube = fresh_tube()
        with greenstalk.Client(ADDRESS, encoding=None, use=tube, watch=tube) as client:
            id = client.put(b"before")
            os.kill(client.stats()["pid"], signal.SIGUSR1)
            while client.stats()["draining"] != "true":
                pass
            with self.assertRaises(greenstalk.DrainingError):
                client.put(b"after")
            self.assertEqual(client.using(), tube)
            job = client.reserve(timeout=5)
            self.assertEqual((job.id, job.body), (id, b"before"))
            client.delete(job)


if __name__ == "__main__":
    unittest.main()
