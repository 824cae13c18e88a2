"""Tasks that a Celery worker runs."""

import os

from celery import Celery

URL = f"redis://127.0.0.1:{os.environ['REDIS_PORT']}"
app = Celery("tasks", broker=f"{URL}/1", backend=f"{URL}/2")
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_prefetch_multiplier = 10
app.conf.task_acks_late = True


@app.task
def add(a, b):
    return a + b


@app.task(bind=True, max_retries=3)
def fails_twice(self, name):
    import redis

    if redis.Redis(port=int(os.environ["REDIS_PORT"])).incr(name) < 3:
        raise self.retry(countdown=0.1)
    return "done"


@app.task
def total(numbers):
    return sum(numbers)
