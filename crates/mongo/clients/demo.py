"""Loads documents into a running server, asks them back, and prints what it took: demo.py PORT."""

import sys
import time

import pymongo

ROWS = 100_000


def timed(what, count, work):
    began = time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - began
    print(f"{what:<44} {count / seconds:>12,.0f} a second   {answer}")


def main():
    client = pymongo.MongoClient("127.0.0.1", int(sys.argv[1]))
    client.drop_database("demo")
    orders = client.demo.orders
    rows = [{"_id": n, "customer": n % 5000, "total": n % 997 / 7, "lines": [{"item": n % 31, "count": n % 4 + 1}]} for n in range(ROWS)]
    timed("insert_many", ROWS, lambda: len(orders.insert_many(rows).inserted_ids))
    timed("create_index('customer')", ROWS, lambda: orders.create_index("customer"))
    timed("find_one by _id", 5000, lambda: sum(1 for n in range(5000) if orders.find_one({"_id": n * 19})))
    timed("find by customer, 20 documents each", 1000, lambda: sum(len(list(orders.find({"customer": n}))) for n in range(1000)))
    timed("update_one by _id", 5000, lambda: sum(orders.update_one({"_id": n}, {"$inc": {"total": 1}}).modified_count for n in range(5000)))
    timed("find in all, by an array of documents", ROWS, lambda: orders.count_documents({"lines.item": 7}))
    group = [{"$group": {"_id": "$customer", "sum": {"$sum": "$total"}}}, {"$sort": {"sum": -1}}, {"$limit": 1}]
    timed("group by customer", ROWS, lambda: next(orders.aggregate(group)))


if __name__ == "__main__":
    main()
