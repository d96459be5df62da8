"""Time numpy's OpenBLAS on one product, for gemm.sh: COUNTxMxNxK[-At][-Bt] SECONDS.

Prints GFLOP/s in the fastest of the samples in that time, as BenchmarkMultiply does, and the kernels that OpenBLAS chose.
"""
import ctypes, glob, os, re, sys, time

import numpy


def core():
    for path in glob.glob(os.path.join(os.path.dirname(numpy.__file__), "..", "numpy.libs", "*openblas*")):
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(library, name):
                getattr(library, name).restype = ctypes.c_char_p
                return getattr(library, name)().decode()
    return "unknown"


def matrix(count, rows, cols, flipped):
    m = numpy.random.rand(count, *((cols, rows) if flipped else (rows, cols))).astype(numpy.float32)
    return m.transpose(0, 2, 1) if flipped else m


def main():
    name, seconds = sys.argv[1], float(sys.argv[2])
    count, m, n, k = map(int, re.match(r"(\d+)x(\d+)x(\d+)x(\d+)", name).groups())
    a, b = matrix(count, m, k, "-At" in name), matrix(count, k, n, "-Bt" in name)
    c = numpy.empty((count, m, n), numpy.float32)
    if count == 1:
        a, b, c = a[0], b[0], c[0]
    numpy.matmul(a, b, out=c)

    flops = 2 * count * m * n * k
    sample = max(1, int(2e7 / flops))
    fastest, begin = float("inf"), time.perf_counter()
    start = begin
    while start < begin + seconds:
        for _ in range(sample):
            numpy.matmul(a, b, out=c)
        now = time.perf_counter()
        fastest, start = min(fastest, now - start), now
    print("%.2f %s" % (1e-9 * flops * sample / fastest, core()))


main()
