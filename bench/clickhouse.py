"""Asks a generated fleet in its folder, on one ClickHouse server and on three shards, by turns. Prints the processor time of each, of memdiag
and the servers together, and the time on the clock, as multiples of the folder's.

    python3 bench/clickhouse.py [ROWS [TURNS]]

Needs clickhouse-server, such as Debian's; starts three with all their files in a temporary folder. All are on this machine: what a cluster
of machines would gain is not measured, what it costs is.
"""

import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

rows = sys.argv[1] if len(sys.argv) > 1 else "1000000"
turns = int(sys.argv[2]) if len(sys.argv) > 2 else 7
here = pathlib.Path(__file__).resolve().parent.parent
work = pathlib.Path(tempfile.mkdtemp())
program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")


def ports(n):
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    found = [s.getsockname()[1] for s in listening]
    for s in listening:
        s.close()
    return found


def start():
    numbers = [ports(3) for _ in range(3)]
    shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{tcp}</port></replica></shard>" for _, tcp, _ in numbers)
    for i, (http, tcp, between) in enumerate(numbers):
        at = work / f"server{i}"
        at.mkdir()
        (at / "config.xml").write_text(f"""<yandex><logger><level>warning</level><log>{at}/log</log><errorlog>{at}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{between}</interserver_http_port><listen_host>127.0.0.1</listen_host>
<path>{at}/data/</path><tmp_path>{at}/tmp/</tmp_path><users_config>{at}/users.xml</users_config><mark_cache_size>268435456</mark_cache_size>
<default_profile>default</default_profile><default_database>default</default_database>
<remote_servers><shards>{shards}</shards></remote_servers></yandex>""")
        (at / "users.xml").write_text("""<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>""")
        servers.append(subprocess.Popen([program, f"--config-file={at}/config.xml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for http, _, _ in numbers:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{http}/ping")
                break
            except OSError:
                time.sleep(0.1)
    return [f"127.0.0.1:{http}" for http, _, _ in numbers]


def processor():
    ticks = 0
    for s in servers:
        fields = pathlib.Path(f"/proc/{s.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ticks / os.sysconf("SC_CLK_TCK") + children.ru_utime + children.ru_stime


def taken(*args):
    """Processor time and time on the clock of a command."""
    before, began = processor(), time.monotonic()
    out = subprocess.run([work / "memdiag", "fleet", *args, "-q"], check=True, capture_output=True, text=True).stdout
    return processor() - before, time.monotonic() - began, out


servers = []
try:
    for name, package in {"memdiag": "./cmd/memdiag", "rows": "./bench/fleet"}.items():
        subprocess.run(["go", "build", "-o", work / name, package], check=True, cwd=here)
    folder = work / "fleet"
    print(subprocess.run([work / "rows", "rows", folder, rows], check=True, capture_output=True, text=True).stdout.strip())
    hosts = start()
    places = {"folder": ["--fleet", folder]}
    for name, to in {"one server": f"clickhouse://{hosts[0]}/one", "three shards": f"clickhouse://{','.join(hosts)}/three?cluster=shards"}.items():
        subprocess.run([work / "memdiag", "fleet", "init", "-q", "--to", to], check=True)
        used, wall, _ = taken("push", "--fleet", folder, "--to", to)
        print(f"push to {name}: {int(rows) / wall:.0f} rows of findings a second, {used / int(rows) * 1e6:.1f} µs of processor time a row")
        places[name] = ["--from", to]
    stored = sum(f.stat().st_size for f in (work / "server0" / "data" / "data" / "one").rglob("*") if f.is_file())
    print(f"on one server {stored / int(rows):.1f} bytes a row of findings, all tables; in the folder {sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) / int(rows):.1f}")
    runs = taken("runs", "--fleet", folder)[2]
    run = re.findall(r"^([0-9a-f]{16}) ", runs, re.M)[0]
    print_ = re.findall(r"s1-[0-9a-f]{16}", taken("leaks", "--fleet", folder)[2])[0]
    for question in (["leaks"], ["show", print_], ["ranks", run], ["compare", "0" * 40, "0" * 39 + "1"]):
        times, said = {name: [] for name in places}, set()
        for turn in range(turns + 1):
            for name, at in places.items():
                used, wall, out = taken(*question, *at)
                said.add(out)
                if turn:  # the first warms
                    times[name].append((used, wall))
        assert len(said) == 1, f"{question}: the answers differ"
        middle = {name: [statistics.median(t[i] for t in of) for i in (0, 1)] for name, of in times.items()}
        base = middle["folder"]
        print(f"{question[0]}: " + "; ".join(f"{name} {m[0] / base[0]:.2f} processor, {m[1] / base[1]:.2f} clock" for name, m in middle.items()) + f"; folder: {base[0]:.3f} s of processor, {base[1]:.3f} s")
finally:
    for s in servers:
        s.kill()
        s.wait()
    shutil.rmtree(work)
