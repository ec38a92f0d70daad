"""pystalk against any beanstalkd server: every command that the client has.

It reads the statistics with a YAML parser, and takes a reply line to arrive in one piece.
"""

import unittest

from pystalk import BeanstalkClient, BeanstalkError
from server import ADDRESS, BINARY, after_expiry, fresh_tube


class Pystalk(unittest.TestCase):
    def setUp(self):
        self.tube = fresh_tube()
        self.client = self.connect()

    def connect(self):
        client = BeanstalkClient(*ADDRESS, socket_timeout=20)
        self.addCleanup(client.close)
        client.use(self.tube)
        client.watch(self.tube)
        return client

    def put(self, body=b"x", **options):
        status, id = self.client.put_job(body, **options)
        self.assertEqual(status, b"INSERTED")
        return id

    def refused(self, word, call, *arguments):
        with self.assertRaises(BeanstalkError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.message, word)

    def state(self, id):
        return self.client.stats_job(id)["state"]

    def test_bodies(self):
        for body in (b"", b"\r\n", BINARY, b"y" * 65535):
            id = self.put(body)
            job = self.client.reserve_job(5)
            self.assertEqual((job.job_id, job.job_data), (id, body))
            self.client.delete_job(job)
        self.refused("JOB_TOO_BIG", self.client.put_job, b"y" * 65536)
        self.assertIn(self.tube, self.client.list_tubes())

    def test_priority_order_and_the_iterator(self):
        ids = [self.put(pri=pri) for pri in (30, 10, 20)]
        self.assertEqual([job.job_id for job in self.client.reserve_iter()],
                         [ids[1], ids[2], ids[0]])
        self.refused("TIMED_OUT", self.client.reserve_job, 0)

    def test_release_bury_and_kick(self):
        id = self.put(pri=1)
        job = self.client.reserve_job(5)
        self.assertEqual(self.client.release_job(job, pri=9, delay=60), b"RELEASED")
        self.assertEqual((self.state(id), self.client.stats_job(id)["pri"]), ("delayed", 9))
        self.assertEqual(self.client.peek_delayed().job_id, id)
        self.client.kick_job(id)
        self.client.bury_job(self.client.reserve_job(5))
        self.assertEqual(self.client.peek_buried().job_id, id)
        self.assertEqual(self.client.kick_jobs(5), (b"KICKED", 1))
        self.assertEqual(self.client.peek_ready().job_id, id)
        self.client.delete_job(id)
        for peek in (self.client.peek_ready, self.client.peek_delayed, self.client.peek_buried):
            self.refused("NOT_FOUND", peek)
        self.refused("NOT_FOUND", self.client.delete_job, id)
        self.refused("NOT_FOUND", self.client.kick_job, id)
        self.refused("NOT_FOUND", self.client.release_job, id)
        self.refused("NOT_FOUND", self.client.bury_job, id)

    def test_two_connections_share_a_tube(self):
        other, ids = self.connect(), {self.put(), self.put()}
        mine, theirs = self.client.reserve_job(5), other.reserve_job(5)
        self.assertEqual({mine.job_id, theirs.job_id}, ids)
        self.refused("NOT_FOUND", self.client.delete_job, theirs)
        other.close()
        self.assertEqual(self.client.reserve_job(5).job_id, theirs.job_id)

    def test_delay_and_deadline(self):
        id = self.put(delay=1, ttr=1)
        self.assertEqual(self.client.reserve_job(5).job_id, id)
        self.refused("DEADLINE_SOON", self.client.reserve_job, 5)
        after_expiry(1, self.client.list_tubes)
        self.assertEqual(self.connect().reserve_job(5).job_id, id)

    def test_pause_and_unpause(self):
        id = self.put()
        self.client.pause_tube(self.tube, 60)
        self.refused("TIMED_OUT", self.client.reserve_job, 0)
        self.assertGreater(self.client.stats_tube(self.tube)["pause-time-left"], 50)
        self.client.unpause_tube(self.tube)
        self.assertEqual(self.client.reserve_job(5).job_id, id)
        self.refused("NOT_FOUND", self.client.pause_tube, fresh_tube())

    def test_tubes(self):
        other = fresh_tube()
        self.client.put_job_into(other, b"elsewhere")
        self.client.watchlist = {self.tube, other}
        self.assertEqual(self.client.stats_tube(other)["current-watching"], 1)
        self.assertEqual(self.client.reserve_job(5).job_data, b"elsewhere")
        self.client.watchlist = {self.tube}
        self.refused("NOT_IGNORED", self.client.ignore, self.tube)

    def test_statistics_are_yaml(self):
        id = self.put(pri=3, ttr=9)
        job, tube, server = (
            self.client.stats_job(id), self.client.stats_tube(self.tube), self.client.stats())
        self.assertEqual((job["tube"], job["pri"], job["ttr"]), (self.tube, 3, 9))
        self.assertEqual((tube["name"], tube["total-jobs"]), (self.tube, 1))
        self.assertIs(server["draining"], False)
        self.assertIsInstance(server["rusage-utime"], float)
        self.assertLessEqual(SERVER_KEYS, server.keys())
        self.refused("NOT_FOUND", self.client.stats_tube, fresh_tube())
        self.refused("NOT_FOUND", self.client.stats_job, 2**63)


SERVER_KEYS = set(
    """
    current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed
    current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried
    cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch cmd-ignore
    cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes
    cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs
    max-job-size current-tubes current-connections current-producers current-workers
    current-waiting total-connections pid version rusage-utime rusage-stime uptime
    binlog-oldest-index binlog-current-index binlog-records-migrated binlog-records-written
    binlog-max-size draining id hostname os platform
    """.split()
)


if __name__ == "__main__":
    unittest.main()
