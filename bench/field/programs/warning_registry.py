"""A warning has the sample's number in its text, and Python keeps each text; --fixed says it once."""
# kind: services
# holder: __warningregistry__
# cause: container-grows cache-without-bound
# rate: ~300 B/warning
import sys
import warnings

FIXED = "--fixed" in sys.argv
warnings.simplefilter("default")
warnings.showwarning = lambda *args, **kwargs: None


def check(i, x):
    if x > 0.5:
        text = "value out of range" if FIXED else f"value of sample {i} is out of range"
        warnings.warn(text)  # leak


total = 0
for i in range(400_000):
    x = (i * 2654435761 % 2**32) / 2**32
    check(i, x)
    total += sum(range(200))
print(f"total {total}")
