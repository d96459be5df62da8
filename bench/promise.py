#!/usr/bin/env python3
"""Of recordings by the clock, how often "To decide: about N more snapshots" holds: each is judged at every prefix of its snapshots.

    bench/promise.py RUN…        # with memdiag on the PATH
"""

import glob
import json
import re
import subprocess
import sys

made = kept = 0
for run in sys.argv[1:]:
    files = sorted(glob.glob(glob.escape(run) + "/snapshot_t*"), key=lambda f: int(re.search(r"_t(\d+)", f)[1]))
    said = {}
    for n in range(3, len(files) + 1):
        out = subprocess.run(["memdiag", "diff", "--format", "json", *files[:n]], capture_output=True, text=True)
        if out.returncode == 0:
            found = json.loads(out.stdout)["findings"]
            said[n] = {f.get("stack_hash") or f["stacks"][0]["hash"]: (f["verdict"], f.get("more_snapshots", 0)) for f in found}
    for n, findings in said.items():
        for stack, (verdict, more) in findings.items():
            if verdict == "inconclusive" and more and n + more in said:
                made += 1
                kept += said[n + more].get(stack, ("gone", 0))[0] != "inconclusive"
print(kept, "of", made)
