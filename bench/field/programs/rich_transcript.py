"""A console that records what it prints, for an export at the end, keeps every segment; --fixed does not record."""
# kind: loggers
# holder: _record_buffer
# cause: container-grows
# rate: ~4000 B/step
import io
import sys

from rich.console import Console
from rich.table import Table

FIXED = "--fixed" in sys.argv
console = Console(record=not FIXED, file=io.StringIO(), width=80)
total = 0
for step in range(6000):
    table = Table("metric", "value")
    for name in ("loss", "accuracy", "rate"):
        table.add_row(name, f"{(step * 7919 % 1000) / 1000:.3f}")
    console.print(table)  # leak
    total += console.file.tell()
    console.file.seek(0)
    console.file.truncate()
print(f"total {total}")
