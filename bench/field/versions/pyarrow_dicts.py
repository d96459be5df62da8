"""pa.array of a list of dicts does not release what it reads from the dicts, before pyarrow 16."""
# kind: numpy
# leaky: pyarrow==15.0.2 numpy==1.26.4
# mended: pyarrow==16.0.0 numpy==1.26.4
# met in: apache/arrow#41172
# holder: -
# cause: host-only
# rate: ~20000 B/batch
import pyarrow as pa

rows = 0
for batch in range(4000):
    records = [{"user": f"user {batch} {i}", "scores": {"first": i, "second": batch}} for i in range(100)]  # leak
    table = pa.array(records)  # leak
    rows += len(table)
print(f"rows {rows}")
