"""The files of bench/hostile.py: how each begins, goes on and ends."""

import functools
import gzip
import io
import struct
import subprocess
import zipfile

PPROF = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x0binuse_space\x32\x05bytes\x22\x02\x08\x01"
TRACE = b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['
TABLE = b"allocator,num_allocations,size,tid,thread_name,stack_trace\n"
NODES = b'<title>memray - flamegraph report\npacked_data = {"nodes":{'
ROWS = b"<title>memray - table report\npacked_data = ["
OVER_TIME = b"<title>memray - temporal flamegraph report\npacked_data = {"
MASSIF = b"desc: x\ncmd: y\ntime_unit: i\n" + b"#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\n"
DHAT = b'{"dhatFileVersion":2,"mode":"heap","bklt":true,'
HEAPTRACK = b"v 10400 3\ns 1 a\ni 1 1 1 1 1\nt 1 0\n"
PRINTED = b'reading file "a" - please wait, this might take some time...\nDebuggee command was: a\nfinished reading file, now analyzing data:\n\nMEMORY LEAKS\n'
HEAP = b"heap_v2/1\n  t*: 1: 1 [0: 0]\n"
DUMP = b"\x80\x04\x8c\x0btracemalloc\x94\x8c\x08Snapshot\x94\x93\x94]"
PICKLE = b"\x80\x04}(\x8c\x08segments](}(\x8c\x06blocks]("
TORCH = b'{"segments": ['
INSIDE = TORCH + b'{"total_size":1,"a":['  # a list that nobody looks at
AGENT = b'{"memdiag_agent":1,'


def nothing(packed, size):
    """A member of so many bytes, about, that unpacks to none."""
    if packed == "zstd":
        return struct.pack("<II", 0x184D2A50, size) + bytes(size)
    return b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"a" * size + b"\0" + gzip.compress(b"")[10:]  # a long name


@functools.lru_cache(maxsize=4)
def zstd(piece):
    return subprocess.run(["zstd", "-q", "-1"], input=piece, stdout=subprocess.PIPE, check=True).stdout


@functools.lru_cache(maxsize=4)
def gzipped(piece):
    return gzip.compress(piece, 1)


PACKERS = {"plain": lambda piece: piece, "gzip": gzipped, "zstd": zstd}


def counted(pattern, each=10_000):
    """Pieces of each patterns with a number that counts up in the place of %d."""
    n = 0
    while True:
        yield "".join(pattern.replace("%d", str(i)) for i in range(n, n + each)).encode()
        n += each


def numbered(make):
    """Pieces that make builds out of a number that counts up."""
    n = 0
    while True:
        yield b"".join(make(i) for i in range(n, n + 10_000))
        n += 10_000


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def again(pattern):
    """Pieces of a pattern again and again."""
    piece = pattern * max(1, (1 << 20) // len(pattern))
    while True:
        yield piece


def rising(least, most, make):
    """Pieces that make builds out of each number from least to most, over and over."""
    while True:
        for n in range(least, most):
            yield make(n)


DIGITS = b"1" * 1_000_000


def chain(nodes, callers):
    """A flamegraph of memray's in which each node is below the one before, and has a byte of its own, or of one
    node below which are all others."""
    below = (f"[{i + 1}]" for i in range(nodes - 1)) if callers else ("[%s]" % ",".join(map(str, range(1, nodes))) if i == 0 else "[]" for i in range(nodes - 1))
    yield ('"children":[%s,[]],' % ",".join(below)).encode()
    for column in ("function", "filename"):
        yield ('"%s":[%s],' % (column, ",".join("0" * nodes))).encode()
    yield ('"lineno":[%s],' % ",".join(map(str, range(nodes)))).encode()
    bytes_ = range(nodes, 0, -1) if callers else [nodes] + [1] * (nodes - 1)
    yield ('"value":[%s],"n_allocations":[%s]},"strings":["a"]}' % (",".join(map(str, bytes_)), ",".join(map(str, bytes_)))).encode()


MASK = (1 << 64) - 1
PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def turned(x, by):
    return (x << by | x >> 64 - by) & MASK


def mixed(lane, word):
    return turned(lane + word * PRIMES[1] & MASK, 31) * PRIMES[0] & MASK


def xxh64(data):
    """The checksum of our own files, of seed 0."""
    p1, p2, p3, p4, p5 = PRIMES
    whole = len(data) & ~31
    h = p5
    if whole:
        a, b, c, d = p1 + p2 & MASK, p2, 0, -p1 & MASK
        for w, x, y, z in struct.iter_unpack("<4Q", memoryview(data)[:whole]):
            a = (a + w * p2) & MASK
            a = ((a << 31 | a >> 33) & MASK) * p1 & MASK
            b = (b + x * p2) & MASK
            b = ((b << 31 | b >> 33) & MASK) * p1 & MASK
            c = (c + y * p2) & MASK
            c = ((c << 31 | c >> 33) & MASK) * p1 & MASK
            d = (d + z * p2) & MASK
            d = ((d << 31 | d >> 33) & MASK) * p1 & MASK
        h = turned(a, 1) + turned(b, 7) + turned(c, 12) + turned(d, 18) & MASK
        for lane in a, b, c, d:
            h = ((h ^ mixed(0, lane)) * p1 + p4) & MASK
    h = h + len(data) & MASK
    rest = data[whole:]
    while len(rest) >= 8:
        h = (turned(h ^ mixed(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        h = (turned(h ^ int.from_bytes(rest[:4], "little") * p1 & MASK, 23) * p2 + p3) & MASK
        rest = rest[4:]
    for byte in rest:
        h = turned(h ^ byte * p5 & MASK, 11) * p1 & MASK
    h = (h ^ h >> 33) * p2 & MASK
    h = (h ^ h >> 29) * p3 & MASK
    return h ^ h >> 32


def headed(magic):
    begin = b"\x89" + magic + b"\n\x01\0\0\0"
    return begin + struct.pack("<I", xxh64(begin) & 0xFFFFFFFF)


def listed(n, element):
    return varint(n) + element * n


# What our own file must have, of one device without a block.
OURS = {
    b"META": bytes(8), b"DEVS": b"\x01\x03cpu" + bytes(8), b"STKS": b"\x01\x00\x01\x00\x00\x00\x00", b"SEGS": b"\0", b"BLKS": b"\0",
    b"BSTP": None, b"BTIM": None, b"OWNR": None, b"CNTS": None, b"HOLD": b"\0", b"HIST": bytes(4), b"NOTE": b"\0",
}


def ours(*kinds, each, make, packed=False):
    """A file of ours in which make, of a number, gives the contents of so many elements of each bytes."""

    def whole(size):
        contents = dict(OURS)
        of = (size * 16 if packed else size) // each
        contents.update(zip(kinds, make(of)))
        out = [headed(b"MDSNAP")]
        for kind, content in contents.items():
            if content is None:
                continue
            how, stored = 0, content
            if packed and kind in kinds and len(content) > 1 << 20:
                how, stored = 1, subprocess.run(["zstd", "-q", "-1"], input=content, stdout=subprocess.PIPE, check=True).stdout
                stored += nothing("zstd", max(0, len(content) // 16 - len(stored)))
            out.append(section(kind, how, stored, len(content)))
        return b"".join(out) + section(b"END.", 0, bytes([len(out) - 1]), 1)

    return whole


def section(kind, how, stored, unpacked):
    head = kind + struct.pack("<IQQ", how, len(stored), unpacked) + stored
    return head + struct.pack("<Q", xxh64(head))


def one_segment(n):
    return b"\x01" + bytes(8) + varint(n)


def columns(n):
    return one_segment(n), listed(n, bytes(5)), bytes(n), bytes(n), bytes(n), bytes(n)


FRAMES = b"\x01\x00" + varint(128) + b"".join(b"\0\0" + varint(i) for i in range(128))


def stacks(n, make):
    """The section of so many stacks that make builds out of their numbers."""
    return FRAMES + varint(n) + b"".join(map(make, range(n)))


def digits(i, n):
    """A number of n digits of base 128."""
    return bytes(i >> 7 * k & 127 for k in range(n))


def sites(n):
    rows = b"".join(varint(i % n + 1) for i in range(n))
    return stacks(n, lambda i: b"\x03" + digits(i, 3)), one_segment(n), varint(n) + bytes(n) + b"\x02" * n + b"\x01" * n + bytes(n) + rows


def record(kind, content):
    head = struct.pack("<I", len(content)) + kind + content
    return head + struct.pack("<Q", xxh64(head))


def log(make):
    """A log of so many bytes, about, behind the table of one device."""
    return lambda size: headed(b"MDSERI") + record(b"D", b"\x01\x03cpu" + bytes(8)) + make(size)


def times(record, size):
    return record * (size // len(record))


POINT = bytes(2) + b"\x01" + bytes(9)  # its last byte is the number of changed sites
FIRST = record(b"P", bytes(13))
SITE = record(b"S", b"\0\0")


def points(sites, live, size):
    """Points behind so many sites, the first of which stay live."""
    change = record(b"P", POINT[:-1] + varint(live) + b"\0\x02\x02" * live)
    return SITE * sites + FIRST + change + times(record(b"P", POINT), size - len(SITE) * sites - len(change))


LOGS = {
    "log: points": log(lambda size: FIRST + times(record(b"P", POINT), size)),
    "log: sites": log(lambda size: times(SITE, size) + FIRST),
    "log: sites that differ": log(lambda size: b"".join(record(b"S", b"\0\x01\0\0\x06%06x\x01\x01" % i) for i in range(size // 26)) + FIRST),
    "log: points of sites that hold nothing": log(lambda size: points(size // 2 // len(SITE), 0, size)),
    "log: points of fewer such sites": log(lambda size: points(100_000, 0, size)),
    "log: points of live sites": log(lambda size: points(30_000, 30_000, size)),
    "log: records of no meaning": log(lambda size: times(record(b"X", b""), size)),
}


def saved(*entries, claim=None, deflate=False):
    """What torch.save writes: entries of a name and of a function that gives content of so many bytes."""

    def whole(size):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED, compresslevel=1) as archive:
            for name, make in entries:
                archive.writestr("archive/" + name, make(size))
            if deflate:
                archive.writestr("archive/data/0", bytes(size - out.tell()), zipfile.ZIP_STORED)
            if claim:
                archive.getinfo("archive/data.pkl").file_size = claim
        return out.getvalue()

    return whole


def entries(size, name):
    """Empty entries up to a size."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", PICKLE)
        for i in range(size // (2 * len(name % 0) + 76)):
            archive.writestr(name % i, b"")
    return out.getvalue()


def pickled(size):
    return PICKLE + times(b"}\x8c\x04sizeK\x01s", size)


# Files that are made whole, of a size. They are compressed inside, if at all.
WHOLE = {
    "ours: blocks": ours(b"SEGS", b"BLKS", each=5, make=lambda n: (one_segment(n), listed(n, bytes(5)))),
    "ours: blocks with all columns": ours(b"SEGS", b"BLKS", b"BSTP", b"BTIM", b"OWNR", b"CNTS", each=9, make=columns),
    "ours: blocks with all columns, packed": ours(b"SEGS", b"BLKS", b"BSTP", b"BTIM", b"OWNR", b"CNTS", each=100, make=columns, packed=True),
    "ours: more blocks, packed": ours(b"SEGS", b"BLKS", each=5, make=lambda n: (one_segment(n), listed(n, bytes(5))), packed=True),
    "ours: blocks of many sites": ours(b"STKS", b"SEGS", b"BLKS", each=14, make=sites),
    "ours: blocks of fewer sites": ours(b"STKS", b"SEGS", b"BLKS", each=170, make=sites),
    "ours: empty texts": ours(b"STKS", each=1, make=lambda n: (listed(n, b"\0") + b"\0\0",)),
    "ours: texts, packed": ours(b"STKS", each=1_000_000, make=lambda n: (listed(n, varint(999_996) + bytes(999_996)) + b"\0\0",), packed=True),
    "ours: frames": ours(b"STKS", each=6, make=lambda n: (b"\x01\0" + varint(n) + b"".join(b"\0\0" + varint(i) for i in range(n)) + b"\0",)),
    "ours: fewer frames": ours(b"STKS", each=36, make=lambda n: (b"\x01\0" + varint(n) + b"".join(b"\0\0" + varint(i) for i in range(n)) + b"\0",)),
    "ours: stacks": ours(b"STKS", each=2, make=lambda n: (FRAMES + listed(n, b"\x01\0"),)),
    "ours: stacks that differ": ours(b"STKS", each=4, make=lambda n: (stacks(n, lambda i: b"\x03" + digits(i, 3)),)),
    "ours: deep stacks": ours(b"STKS", each=16_000, make=lambda n: (stacks(n, lambda i: varint(16_000) + digits(i, 3) + bytes(15_997)),)),
    "ours: deep stacks, packed": ours(b"STKS", each=160_000, make=lambda n: (stacks(n, lambda i: varint(16_000) + digits(i, 3) + bytes(15_997)),), packed=True),
    "ours: segments": ours(b"SEGS", each=9, make=lambda n: (listed(n, bytes(9)),)),
    "ours: fewer segments": ours(b"SEGS", each=32, make=lambda n: (listed(n, bytes(9)),)),
    "ours: devices": ours(b"DEVS", each=9, make=lambda n: (listed(n, bytes(9)),)),
    "ours: holders": ours(b"HOLD", each=4, make=lambda n: (listed(n, bytes(4)),)),
    "ours: fewer holders": ours(b"HOLD", each=14, make=lambda n: (listed(n, bytes(4)),)),
    "ours: notes": ours(b"NOTE", each=1, make=lambda n: (listed(n, b"\0"),)),
    "ours: fewer notes": ours(b"NOTE", each=20, make=lambda n: (listed(n, b"\0"),)),
    "ours: sections of no meaning": lambda size: headed(b"MDSNAP") + times(section(b"NEW!", 0, b"", 0), size),
    "torch.save: blocks": saved(("data.pkl", pickled)),
    "torch.save: blocks, compressed": saved(("data.pkl", lambda size: pickled(size * 5)), deflate=True),
    "torch.save: nothing, compressed": saved(("data.pkl", lambda size: pickled(0) + bytes(size * 10)), deflate=True),
    "torch.save: tensors": saved(("data.pkl", lambda size: b"\x80\x02}X\x08\0\0\0segments]s."), ("data/0", bytes)),
    "torch.save: a length that lies": saved(("data.pkl", pickled), claim=1 << 50),
    "torch.save: entries": lambda size: entries(size, "archive/%d"),
    "torch.save: entries of long names": lambda size: entries(size, "a" * 60_000 + "%d"),
    "torch.save: pickles": lambda size: entries(size, "%d/data.pkl"),
}

TRACE_END = b"{}]}"
# A file is a beginning, pieces that go on until it is large enough, and perhaps an end.
FILES = {
    "pprof: samples": (PPROF, again(b"\x12\x06\x0a\x01\x01\x12\x01\x05")),
    "pprof: samples, each with a location": (PPROF + field(4, b"\x08\x01"), again(b"\x12\x06\x0a\x01\x01\x12\x01\x05")),
    "pprof: functions": (PPROF, numbered(lambda i: field(5, b"\x08" + varint(i)))),
    "pprof: locations": (PPROF, numbered(lambda i: field(4, b"\x08" + varint(i)))),
    "pprof: locations of one number": (PPROF, again(field(4, b"\x08\x01"))),
    "pprof: a location with lines": (PPROF, again(field(4, b"\x22\x02\x08\x01" * 1_000_000))),
    "pprof: mappings": (PPROF, numbered(lambda i: field(3, b"\x08" + varint(i)))),
    "pprof: labels": (PPROF, again(field(2, b"\x1a\x02\x08\x01" * 100_000))),
    "pprof: figures": (PPROF, again(field(2, b"\x12\x01\x01" * 1_000_000))),
    "pprof: samples with a million locations": (PPROF + field(4, b"\x08\x01"), again(field(2, field(1, b"\x01" * 1_000_000) + b"\x12\x01\x05"))),
    "pprof: strings": (PPROF, numbered(lambda i: field(6, str(i).encode()))),
    "pprof: empty strings": (PPROF, again(b"\x32\x00")),
    "pprof: long strings": (PPROF, again(field(6, b"a" * 4_000_000))),
    "pprof: comments": (PPROF, again(b"\x68\x01")),
    "pprof: integers of ten bytes": (PPROF, again(b"\x68" + b"\xff" * 9 + b"\x01")),
    "pprof: fields of no meaning": (PPROF, again(b"\xa0\x06\x01")),
    "kineto: empty events": (TRACE, again(b"{},"), TRACE_END),
    "kineto: memory events": (TRACE, again(b'{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1,"args":{"Addr":1,"Bytes":64}},'), TRACE_END),
    "kineto: short memory events": (TRACE, again(b'{"name":"[memory]"},'), TRACE_END),
    "kineto: short calls": (TRACE, again(b'{"ph":"X","cat":"cpu_op"},'), TRACE_END),
    "kineto: calls of many names": (TRACE, counted('{"ph":"X","cat":"cpu_op","name":"%d","tid":1,"ts":1,"dur":9},'), TRACE_END),
    "kineto: threads": (TRACE, counted('{"name":"[memory]","tid":%d},'), TRACE_END),
    "kineto: members": (TRACE + b"{", again(b'"name":"[memory]",')),
    "kineto: arguments": (TRACE, again(b'{"name":"[memory]","args":{' + b'"Bytes":1,' * 100_000 + b'"a":1}},'), TRACE_END),
    "kineto: blocks below nested calls": (
        TRACE + b"".join(b'{"ph":"X","cat":"cpu_op","name":"f%d","ts":%d,"dur":%d},' % (i, i, 10_000_000 - 2 * i) for i in range(16_000)),
        counted('{"name":"[memory]","ts":2%d,"args":{"Bytes":1,"Addr":%d}},'),
        TRACE_END,
    ),
    "kineto: blocks below calls that differ": (
        TRACE + b"".join(b'{"ph":"X","cat":"cpu_op","name":"f%d","ts":%d,"dur":%d},' % (i, i, 100_000_000 - 2 * i) for i in range(16_000)),
        counted('{"ph":"X","cat":"cpu_op","name":"g","ts":2%d,"dur":0.5},{"name":"[memory]","ts":2%d.2,"args":{"Bytes":1,"Addr":%d}},'),
        TRACE_END,
    ),
    "kineto: blocks on many threads": (TRACE, counted('{"name":"[memory]","tid":%d,"ts":%d,"args":{"Bytes":1,"Addr":%d}},'), TRACE_END),
    "kineto: lists in lists": (TRACE, again(b"[")),
    "kineto: long texts": (TRACE, again(b'"' + b"a" * 4_000_000 + b'",')),
    "kineto: long numbers": (TRACE, again(b'{"name":"[memory]","ts":' + DIGITS + b"},"), TRACE_END),
    "kineto: keys": (b'{"schemaVersion": 1, "deviceProperties": []', again(b',"a":1')),
    "kineto: lists of events": (b'{"schemaVersion": 1, "deviceProperties": []', again(b',"traceEvents":[]')),
    "kineto: spaces": (TRACE, again(b" ")),
    "memray: rows": (TABLE, again(b"1,1,1,1,a,f;x.py;1\n")),
    "memray: many rows": (TABLE, counted("1,1,1,1,a,f;x.py;%d\n")),
    "memray: short rows": (TABLE, again(b"1,1,1,1,1,\n")),
    "memray: quoted names": (TABLE, again(b'1,1,1,1,"a","f;x.py;1"\n')),
    "memray: quotation marks": (TABLE, again(b'1,1,1,1,"' + b'""' * 500_000 + b'",a\n')),
    "memray: bars": (TABLE, again(b"1,1,1,1,1," + b"|" * 1_000_000 + b"\n")),
    "memray: deep stacks": (TABLE, again(b"1,1,1,1,1," + b"a|" * 16_000 + b"\n")),
    "memray: deep stacks that differ": (TABLE, counted("1,1,1,1,1," + "a|" * 200 + "%d\n")),
    "memray: long numbers": (TABLE, again(b"1," + DIGITS + b",1,1,1,a\n")),
    "memray: commas": (TABLE, again(b"," * 1_000_000 + b"\n")),
    "memray: empty lines": (TABLE, again(b"\n")),
    "memray: a line without end": (TABLE, again(b"a")),
    "memray page: numbers": (NODES + b'"value":[', again(b"0,")),
    "memray page: numbers that are passed over": (NODES + b'"a":[', again(b"0,")),
    "memray page: long numbers": (NODES + b'"value":[', again(DIGITS[:900_000] + b",")),
    "memray page: zeros before a number": (NODES + b'"value":[', again(b"0" * 900_000 + b"1,")),
    "memray page: children": (NODES + b'"children":[', counted("[%d],")),
    "memray page: no children": (NODES + b'"children":[[1]', again(b",[]")),
    "memray page: columns": (NODES, again(b'"a":1,')),
    "memray page: keys": (NODES + b'},"strings":[]', again(b',"strings":[]')),
    "memray page: texts": (NODES + b'},"strings":[', counted('"%d",')),
    "memray page: empty texts": (NODES + b'},"strings":[', again(b'"",')),
    "memray page: entities": (NODES + b'},"strings":[', again(b'"' + b"&lt;" * 200_000 + b'",')),
    "memray page: ampersands": (NODES + b'},"strings":[', again(b'"' + b"&" * 900_000 + b'",')),
    "memray page: escapes": (NODES + b'},"strings":[', again(b'"' + b"\\u0041" * 150_000 + b'",')),
    "memray page: rows": (ROWS, again(b'{"stack_trace":""},'), b'{"stack_trace":""}]'),
    "memray page: rows of many places": (ROWS, counted('{"stack_trace":"a at b:%d","size":1},'), b'{"stack_trace":""}]'),
    "memray page: members of a row": (ROWS + b"{", again(b'"size":1,')),
    "memray page: lists in lists": (ROWS, again(b"[")),
    "memray page: intervals": (OVER_TIME + b'"intervals":[', again(b"[1,null,0,1,1],"), b'[1,null,0,1,1]],"nodes":{"children":[[]],"function":[0],"filename":[0],"lineno":[0]},"strings":["a"]}'),
    "memray page: peaks": (OVER_TIME + b'"high_water_mark_by_snapshot":[', again(b"1,")),
    "memray page: nodes in a chain": (NODES, chain(1_000_000, True)),
    "memray page: nodes in a short chain": (NODES, chain(60_000, True)),
    "memray page: nodes below one": (NODES, chain(1_000_000, False)),
    "memray page: no mark": (b"<title>memray - flamegraph report\n", again(b"packed_data packed_data=")),
    "heaptrack: texts": (HEAPTRACK, counted("s 1 a\n")),
    "heaptrack: empty texts": (HEAPTRACK, again(b"s 0 \n")),
    "heaptrack: addresses": (HEAPTRACK, again(b"i 1 1\n")),
    "heaptrack: frames": (HEAPTRACK, again(b"i 1 1" + b" 1" * 400_000 + b"\n")),
    "heaptrack: traces": (HEAPTRACK, again(b"t 1 0\n")),
    "heaptrack: allocations": (HEAPTRACK, again(b"a 1 1\n")),
    "heaptrack: allocations that live": (HEAPTRACK, numbered(lambda i: b"a 1 1\n+ %x\n" % i)),
    "heaptrack: events": (HEAPTRACK + b"a 1 1\n", again(b"+ 0\n")),
    "heaptrack: deep stacks": (
        HEAPTRACK + b"".join(b"t 1 %x\n" % i for i in range(1, 16_000)),
        numbered(lambda i: b"a 1 %x\n+ %x\n" % (15_000 + i % 900, i)),
    ),
    "heaptrack: a chain of traces that all live": (HEAPTRACK, numbered(lambda i: b"t 1 %x\na 1 %x\n+ %x\n" % (i + 1, i + 2, i))),
    "heaptrack: deep stacks that differ": (
        HEAPTRACK + b"".join(b"t 1 %x\n" % i for i in range(1, 16_000)),
        numbered(lambda i: b"t 1 %x\na 1 %x\n+ %x\n" % (12_000 + i % 3000, 16_000 + i, i)),
    ),
    "heaptrack: traces of no address": (HEAPTRACK, numbered(lambda i: b"t 0 %x\na 1 %x\n+ %x\n" % (i + 1, i + 2, i))),
    "heaptrack: one block again and again": (HEAPTRACK + b"a 1 1\n", again(b"+ 0\n- 0\n")),
    "heaptrack: empty lines": (HEAPTRACK, again(b"\n")),
    "heaptrack: long numbers": (HEAPTRACK, again(b"+ " + DIGITS + b"\n")),
    "heaptrack: a line without end": (HEAPTRACK, again(b"a")),
    "heaptrack_print: leaks": (PRINTED, again(b"1B leaked over 1 calls from\na\n1B leaked over 1 calls from:\n\n"), b"total runtime: 1s\n"),
    "heaptrack_print: callers": (PRINTED + b"1B leaked over 1 calls from\na\n1B leaked over 1 calls from:\n", counted("    f%d\n"), b"total runtime: 1s\n"),
    "heaptrack_print: empty lines": (PRINTED, again(b"\n")),
    "massif: empty lines": (MASSIF, again(b"\n")),
    "massif: snapshots": (MASSIF, again(b"snapshot=1\ntime=1\nmem_heap_B=0\nheap_tree=empty\n")),
    "massif: trees": (MASSIF, again(b"heap_tree=peak\nn0: 8 (heap\n")),
    "massif: a tree of one level": (MASSIF + b"heap_tree=peak\nn99999999: 999999999999 (heap\n", counted(" n0: 1 0x1: f (a.c:%d)\n")),
    "massif: deep trees": (
        MASSIF,
        again(b"heap_tree=peak\n" + b"".join(b" " * i + b"n1: 8 0x1: f (a.c:%d)\n" % i for i in range(500)) + b" " * 500 + b"n0: 8 0x1: f (a.c:1)\n"),
    ),
    "massif: a tree deeper than any": (MASSIF + b"heap_tree=peak\n", rising(0, 8000, lambda i: b" " * i + b"n1: 8 0x1: f (a.c:1)\n")),
    "massif: long numbers": (MASSIF, again(b"time=" + DIGITS + b"\n")),
    "massif: long lines": (MASSIF + b"heap_tree=peak\nn99999999: 999999999999 (heap\n", again(b" n0: 1 0x1: " + b"f" * 900_000 + b" (a.c:1)\n")),
    "massif: a line without end": (MASSIF, again(b"a")),
    "dhat: sites": (DHAT + b'"pps":[', again(b'{"eb":1,"ebk":1,"fs":[1]},'), b'{}],"ftbl":["","0x1: f (a.c:1)"]}'),
    "dhat: sites of deep stacks": (DHAT + b'"pps":[', again(b'{"eb":1,"ebk":1,"fs":[' + b"1," * 20_000 + b"1]},"), b'{}],"ftbl":["","0x1: f (a.c:1)"]}'),
    "dhat: empty sites": (DHAT + b'"pps":[', again(b"{},")),
    "dhat: frames of a site": (DHAT + b'"pps":[{"fs":[', again(b"1,")),
    "dhat: places": (DHAT + b'"ftbl":[', counted('"0x1: f (a.c:%d)",')),
    "dhat: empty places": (DHAT + b'"ftbl":[', again(b'"",')),
    "dhat: keys": (DHAT[:-1], again(b',"a":1')),
    "dhat: lists in lists": (DHAT + b'"pps":[', again(b"[")),
    "dhat: long numbers": (DHAT + b'"pps":[{"eb":', again(DIGITS)),
    "dhat: sites that differ": (
        DHAT + b'"ftbl":[' + b",".join(b'"0x1: f (a.c:%d)"' % i for i in range(1, 10_000)) + b'],"pps":[',
        counted('{"eb":1,"ebk":1,"fs":[%d]},'.replace("%d", "1,2,3,4,5,6,7,8,9")),
        b"{}]}",
    ),
    "jemalloc: empty lines": (HEAP, again(b"\n")),
    "jemalloc: stacks": (HEAP, again(b"@ 0x1\n  t*: 1: 1 [0: 0]\n")),
    "jemalloc: stacks that differ": (HEAP + b"\n", numbered(lambda i: b"@ 0x%x 0x%x\n  t*: 1: 1 [0: 0]\n" % (i, i + 1))),
    "jemalloc: addresses": (HEAP, again(b"@" + b" 0x1" * 250_000 + b"\n  t*: 1: 1 [0: 0]\n")),
    "jemalloc: long numbers": (HEAP, again(b"@ 0x" + DIGITS + b"\n")),
    "jemalloc: mapped files": (HEAP + b"\nMAPPED_LIBRARIES:\n", again(b"1-2 r 0 0 0 /a\n")),
    "jemalloc: fields of a map": (HEAP + b"\nMAPPED_LIBRARIES:\n", again(b"a " * 500_000 + b"\n")),
    "jemalloc: a line without end": (HEAP, again(b"a")),
    "tracemalloc: traces": (DUMP, again(b"K\x00K\x01)\x87a")),
    "tracemalloc: nothing": (DUMP, again(b"N0")),
    "tracemalloc: tuples in tuples": (DUMP, again(b"\x85")),
    "tracemalloc: marks": (DUMP, again(b"(")),
    "tracemalloc: lists": (DUMP, again(b"]a")),
    "tracemalloc: what is remembered": (DUMP, again(b"N\x94a")),
    "tracemalloc: texts": (DUMP, again(b"\x8c\x01a\x94a")),
    "tracemalloc: long integers": (DUMP, again(b"\x8a\xff" + b"\x01" * 255 + b"a")),
    "torch: blocks": (PICKLE, again(b"}\x8c\x04sizeK\x01s")),
    "torch: empty blocks": (PICKLE, again(b"}")),
    "torch: texts": (PICKLE, again(b"\x8c\x01a\x940")),
    "torch: long texts": (PICKLE, again(b"X" + struct.pack("<I", 1_000_000) + b"a" * 1_000_000 + b"0")),
    "torch: lists in lists": (PICKLE, again(b"]")),
    "torch: marks": (PICKLE, again(b"(")),
    "torch: tuples in tuples": (PICKLE, again(b"\x85")),
    "torch: dictionaries in dictionaries": (PICKLE, again(b"}(\x8c\x01a")),
    "torch: what is remembered": (PICKLE, again(b"N\x94")),
    "torch: places of what is remembered": (PICKLE, numbered(lambda i: b"Nr" + struct.pack("<I", i * 97 % (1 << 31)) + b"0")),
    "torch: long integers": (PICKLE, again(b"\x8b" + struct.pack("<I", 1_000_000) + b"\x01" * 1_000_000 + b"0")),
    "torch: integers in digits": (PICKLE, again(b"I" + DIGITS + b"\n0")),
    "torch: long integers in digits": (PICKLE, again(b"L" + DIGITS + b"L\n0")),
    "torch: keys of a block": (PICKLE + b"}(", again(b"\x8c\x04sizeK\x01")),
    "torch: frames": (PICKLE + b"}(\x8c\x06frames](", numbered(lambda i: b"}(\x8c\x04nameX\x06\x00\x00\x00%06x\x8c\x04lineK\x01u" % i)),
    "torch: events": (b"\x80\x04}(\x8c\x0ddevice_traces](](", again(b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01u")),
    "torch: steps of an optimizer": (b"\x80\x04}(\x8c\x08segments]\x8c\x01x](\x8c\x04name\x94\x8c\x05stage\x94\x8c\x03END\x94\x8c\x07time_us\x94\x8c\x10Optimizer.step#a\x94e"
                                     b"\x8c\x14external_annotations](", again(b"}(h\x00h\x04h\x01h\x02h\x03K\x01u")),
    "torch: frames of an open list": (b"\x80\x04}(\x8c\x04name\x8c\x01f\x86N}(\x8c\x04name\x8c\x01fu\x94](", again(b"h\x00" * 1000 + b"e(")),
    "torch: globals": (PICKLE, again(b"cos\nsystem\n0")),
    "torch: bytes": (PICKLE, again(b"C\0000")),
    "torch: escapes": (PICKLE, again(b"V" + b"\\u" * 100_000 + b"\n0")),
    "torch JSON: segments": (TORCH, again(b'{"total_size":1},')),
    "torch JSON: empty segments": (TORCH, again(b"{},")),
    "torch JSON: blocks": (TORCH + b'{"total_size":1,"blocks":[', again(b'{"size":1},')),
    "torch JSON: lists in lists": (INSIDE, again(b"[")),
    "torch JSON: numbers": (INSIDE, again(b"1,")),
    "torch JSON: long numbers": (INSIDE, again(DIGITS + b",")),
    "torch JSON: keys": (TORCH[:-len(b'"segments": [')] + b'"segments": []', again(b',"a":1')),
    "torch JSON: segments again and again": (TORCH + b"]", again(b',"segments": []')),
    "torch JSON: escapes": (TORCH, again(b'{"total_size":1,"a":"' + b"\\u0041" * 150_000 + b'"},')),
    "torch JSON: escapes of a letter": (TORCH, again(b'{"total_size":1,"a":"' + b"\\n" * 450_000 + b'"},')),
    "torch JSON: long texts": (INSIDE, again(b'"' + b"a" * 1_000_000 + b'",')),
    "torch JSON: frames": (TORCH + b'{"total_size":1,"blocks":[{"size":1,"frames":[', counted('{"name":"%d","filename":"a.py","line":1},')),
    "torch JSON: frames in frames": (TORCH + b'{"total_size":1,"a":[', counted('{"frames":[' * 480 + '{"name":"%d"}' + '],"name":"a"}' * 480 + ",", 100)),
    "torch JSON: events": (TORCH + b'],"device_traces":[[', counted('{"action":"alloc","addr":%d,"size":1,"frames":[]},')),
    "torch JSON: spaces": (TORCH, again(b" ")),
    "torch page: base64": (b'<!DOCTYPE html>\n<html><script>add_local_files([{"name":"a","base64":"', again(b"gARd")),
    "ours while it runs: numbers": (AGENT + b'"blocks":{"size":[', again(b"1,")),
    "ours while it runs: stacks": (AGENT + b'"stacks":[', again(b"[],")),
    "ours while it runs: frames": (AGENT + b'"frames":[', again(b'["","",1],')),
    "ours while it runs: lists in lists": (AGENT + b'"a":', again(b"[")),
    "ours while it runs: keys": (AGENT + b'"step":1', again(b',"step":1')),
}
