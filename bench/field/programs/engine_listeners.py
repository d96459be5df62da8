"""Each request listens to the engine's statements to time its own, and never stops listening; --fixed removes the listener."""
# kind: services
# holder: dispatch before_cursor_execute _key_to_collection listeners
# cause: container-grows hook-not-removed cache-without-bound
# rate: ~1500 B/request
import sys

from sqlalchemy import create_engine, event, text

FIXED = "--fixed" in sys.argv
engine = create_engine("sqlite://")
with engine.begin() as connection:
    connection.execute(text("create table runs (id integer primary key, score real)"))
    for run in range(200):
        connection.execute(text("insert into runs values (:id, :score)"), {"id": run, "score": run * 0.5})


class Request:
    def __init__(self, number):
        self.number = number
        self.statements = []

    def saw(self, conn, cursor, statement, parameters, context, executemany):
        if len(self.statements) < 3:
            self.statements.append((self.number, statement, parameters))

    def answer(self):
        event.listen(engine, "before_cursor_execute", self.saw)  # leak
        with engine.connect() as connection:
            row = connection.execute(text("select score from runs where id = :id"), {"id": self.number % 200}).one()
        if FIXED:
            event.remove(engine, "before_cursor_execute", self.saw)
        return row.score


total = 0.0
for number in range(2500):
    total += Request(number).answer()  # leak
print(f"total {total}")
