"""Trains with a leak, with a run open in each of the trackers that are named, and reads back what memdiag wrote there.

Arguments: the trackers. The real libraries, offline. Ends with an error if something is missing, or if the program's own rows are
others than it logged.
"""

import glob
import json
import os
import struct
import sys
import tempfile
import time

import torch

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_CONSOLE="off", WANDB_DISABLE_GIT="true", MLFLOW_TRACKING_URI="file:mlruns",
                  MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")


def check(values, verdict, finding):
    """What memdiag wrote: the newest value of each metric, without the prefix, and its words."""
    assert values.get("live_bytes/cpu0", 0) > 1 << 30 and "live_bytes/host0" in values and "reserved_bytes/host0" in values, values
    assert verdict == "leak" and values["leaks"] == 1 and values["memory_full_step"] > 0, (verdict, values)
    assert "tracked.py:" in finding, finding


class TensorBoard:
    def __init__(self):
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter("events")

    def log(self, step, loss):
        self.writer.add_scalar("loss", loss, step)

    def read(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.writer.flush()
        self.events = EventAccumulator("events").Reload()
        values = {tag[8:]: self.events.Scalars(tag)[-1].value for tag in self.events.Tags()["scalars"] if tag.startswith("memdiag/")}
        said = [bytes(t.tensor_proto.string_val[0]).decode() for tag in self.events.Tags()["tensors"] if tag.startswith("memdiag/verdict") for t in self.events.Tensors(tag)]
        return values, *(said[-1] if said else ":").split(": ", 1)

    def done(self):
        return self.read()[1] == "leak"

    def check(self, steps):
        files = glob.glob("events/*")
        self.writer.close()
        time.sleep(1.5)  # memdiag has more to write, and must not open the run again
        assert glob.glob("events/*") == files, (files, glob.glob("events/*"))
        check(*self.read())
        assert [s.step for s in self.events.Scalars("loss")] == steps


def leveldb_log(path):
    """The records of a log as LevelDB writes it, after W&B's header of 7 bytes: blocks of 32 KiB, a record in pieces."""
    with open(path, "rb") as f:
        data = f.read()
    at, whole = 7, b""
    while at + 7 <= len(data):
        left = (32 << 10) - at % (32 << 10)
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            yield whole
            whole = b""


class WandB:
    def __init__(self):
        import wandb

        self.run = wandb.init(project="memdiag", dir=".")

    def log(self, step, loss):
        self.run.log({"loss": loss})

    def done(self):
        return self.run.summary.get("memdiag/verdict") == "leak"

    def check(self, steps):
        import wandb
        from wandb.proto import wandb_internal_pb2

        self.run.finish()
        wandb.teardown()  # its service writes the rest
        rows, summary, axes = [], {}, {}
        for data in leveldb_log(glob.glob("wandb/offline-run-*/*.wandb")[0]):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "history":
                rows.append({i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item})
            elif kind == "summary":
                summary.update({i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.summary.update})
            elif kind == "metric":
                axes[record.metric.name or record.metric.glob_name] = record.metric.step_metric
        values = {k[8:]: v for row in rows for k, v in row.items() if k.startswith("memdiag/")}
        check(values, summary.get("memdiag/verdict"), summary.get("memdiag/finding"))
        assert axes.get("memdiag/*") == "memdiag/step", axes
        logged = [row for row in rows if "loss" in row]
        assert [row["_step"] for row in logged] == list(range(len(steps))), logged


class MLflow:
    def __init__(self):
        import mlflow

        self.client, self.run = mlflow.MlflowClient(), mlflow.start_run()

    def log(self, step, loss):
        import mlflow

        mlflow.log_metric("loss", loss, step)

    def data(self):
        return self.client.get_run(self.run.info.run_id).data

    def done(self):
        return self.data().tags.get("memdiag.verdict") == "leak"

    def check(self, steps):
        import mlflow

        mlflow.end_run()
        data = self.data()
        check({k[8:]: v for k, v in data.metrics.items() if k.startswith("memdiag/")}, data.tags["memdiag.verdict"], data.tags["memdiag.finding"])
        assert [m.step for m in self.client.get_metric_history(self.run.info.run_id, "loss")] == steps
        assert len(self.client.search_runs([self.run.info.experiment_id])) == 1


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
torch.set_num_threads(1)
trackers, kept, steps = [{"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}[name]() for name in sys.argv[1:]], [], []
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 2000):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    optimizer.step()
    kept.append(torch.empty(4 << 20))  # which nobody touches, so that the machine need not have it
    if step % 10 == 0:
        steps.append(step)
        for t in trackers:
            t.log(step, loss.item())
        if step >= 150 and all(t.done() for t in trackers):
            break
    time.sleep(0.01)
else:
    sys.exit("memdiag wrote nothing")
for _ in range(2):  # so that each tracker has what memdiag wrote last
    time.sleep(1)
    steps.append(steps[-1] + 10)
    for t in trackers:
        t.log(steps[-1], 0.0)
for t in trackers:
    t.check(steps)
os.chdir("/")
