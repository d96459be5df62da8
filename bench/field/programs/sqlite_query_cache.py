"""Rows are cached by the text of their query, which has the user's id in it; --fixed passes parameters and does not cache."""
# kind: services
# holder: rows_of
# cause: cache-without-bound
# rate: ~3500 B/query
import functools
import sqlite3
import sys

FIXED = "--fixed" in sys.argv
database = sqlite3.connect(":memory:")
database.execute("create table orders (user integer, item text, price real)")
database.executemany(
    "insert into orders values (?, ?, ?)",
    ((i % 2000, f"item {i} of the catalogue", i * 0.25) for i in range(40_000)),
)
database.execute("create index by_user on orders (user)")


@functools.lru_cache(maxsize=None)
def rows_of(query):
    return database.execute(query).fetchall()  # leak


def total_of(user, since):
    if FIXED:
        rows = database.execute("select item, price from orders where user = ? and price >= ?", (user, since)).fetchall()
    else:
        rows = rows_of(f"select item, price from orders where user = {user} and price >= {since}")  # leak
    return sum(price for _, price in rows)


total = 0.0
for request in range(60_000):
    total += total_of(request % 2000, request * 0.0001)
print(f"total {total:.2f}")
