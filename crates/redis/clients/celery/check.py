"""A thousand jobs by Celery: tasks, retries, a chord, jobs for later, and the server killed while they run."""

import os
import subprocess
import sys

import redis
from celery import chord, group

from tasks import add, fails_twice, total

THREADS = ["--pool=threads", "--concurrency=8", "--loglevel=ERROR", "--without-mingle"]


def many():
    jobs = group(add.s(i, i) for i in range(1000)).apply_async()
    assert jobs.get(timeout=120) == [2 * i for i in range(1000)]


def retries():
    assert fails_twice.delay("tries").get(timeout=60) == "done"


def a_chord():
    assert chord(add.s(i, 1) for i in range(50))(total.s()).get(timeout=60) == sum(range(1, 51))


def later():
    assert add.apply_async((1, 2), countdown=1).get(timeout=60) == 3


def a_kill_in_between():
    subprocess.run([os.environ["RESTART_SERVER"]], check=True)
    jobs = [add.delay(i, 1) for i in range(100)]
    assert [job.get(timeout=60) for job in jobs] == list(range(1, 101))


def nothing_is_left():
    r = redis.Redis(port=int(os.environ["REDIS_PORT"]), db=1)
    assert r.llen("celery") == 0


def main():
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", *THREADS]
    worker = subprocess.Popen(command)
    failed, checks = 0, [many, retries, a_chord, later, a_kill_in_between, nothing_is_left]
    try:
        for check in checks:
            try:
                check()
                print("ok", check.__name__)
            except Exception as error:
                failed += 1
                print("FAILED", check.__name__, type(error).__name__, error)
    finally:
        worker.terminate()
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()
    print(f"{len(checks) - failed} passed, {failed} failed")
    raise SystemExit(failed > 0)


main()
