"""What small documents take on disk, after a compaction: orders of eight fields, and how fast they are found one by one.

DRUMLIN=target/release/drumlin python sizes.py [DOCUMENTS]
"""

import datetime
import random
import signal
import sys
import tempfile
import time

from conftest import Running

AT_ONCE = 5000
FOUND = 20_000
STATES = ["new", "paid", "shipped", "delivered", "returned", "cancelled"]
CITIES = ["Berlin", "Paris", "London", "Madrid", "Rome", "Wien", "Prague", "Oslo"]


def orders(count, chance):
    at = 1_700_000_000
    for number in range(count):
        at += chance.randrange(60)
        yield {
            "_id": number,
            "customer": chance.randrange(200_000),
            "status": chance.choice(STATES),
            "placed": datetime.datetime.fromtimestamp(at, datetime.timezone.utc),
            "total": round(chance.random() * 500, 2),
            "city": chance.choice(CITIES),
            "items": [{"sku": f"SKU-{chance.randrange(50_000):06}", "n": chance.randrange(1, 5)} for _ in range(2)],
        }


def main(count):
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        server = Running(directory)
        collection = server.client.db.orders
        batch = []
        for order in orders(count, chance):
            batch.append(order)
            if len(batch) == AT_ONCE or order["_id"] + 1 == count:
                collection.insert_many(batch)
                batch = []
        # What was written in haste is written again by the second.
        for _ in range(2):
            server.client.db.command("compact", "orders")
        found = server.client.db.command("collStats", "orders")
        each = [found[size] / found["count"] for size in ("size", "storageSize")]
        print(f"{found['count']} orders of {each[0]:.1f} bytes: {each[1]:.2f} bytes stored of each")
        begun = time.monotonic()
        for _ in range(FOUND):
            assert collection.find_one({"_id": chance.randrange(count)})
        print(f"{(time.monotonic() - begun) / FOUND * 1e6:.1f} us a find, one client")
        assert server.end(signal.SIGTERM) == 0


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["500000"]))
