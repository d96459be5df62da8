"""A service makes a logger for each job, and logging keeps loggers for ever; --fixed uses one logger and an adapter."""
# kind: loggers
# holder: loggerDict
# cause: cache-without-bound container-grows
# rate: ~1000 B/job
# met in: DIRACGrid/DIRAC#5280
import io
import json
import logging
import sys

FIXED = "--fixed" in sys.argv
stream = io.StringIO()
root = logging.getLogger("jobs")
root.setLevel(logging.INFO)
root.addHandler(logging.StreamHandler(stream))
root.propagate = False


def run(job, payload):
    if FIXED:
        log = logging.LoggerAdapter(root, {"job": job})
    else:
        log = logging.getLogger(f"jobs.job-{job}")  # leak
    log.info("start")
    result = sum(len(word) for word in json.loads(payload)["text"].split())
    log.info("done")
    stream.seek(0)
    stream.truncate()
    return result


total = 0
for job in range(150_000):
    total += run(job, json.dumps({"text": f"job {job} has a text of some words " * 4}))
print(f"total {total}")
