"""The jobs that workers of Celery and RQ run, in processes and threads of their own."""

import os

from celery import Celery

ADDRESS = "redis://" + os.environ.get("REDIS_ADDR", "127.0.0.1:6379")

app = Celery("tasks", broker=ADDRESS, backend=f"{ADDRESS}/1")
app.conf.update(task_default_queue="celery-jobs", worker_hijack_root_logger=False)


def add(one, other):
    return one + other


def fail():
    raise ValueError("it fails")


@app.task
def celery_add(one, other):
    return one + other


@app.task
def celery_sum(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=2)
def celery_third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries
