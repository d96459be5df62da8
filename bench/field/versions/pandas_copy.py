"""With pandas 2.0.3 each copy of a frame leaves a weak reference in a list of its columns' index."""
# kind: numpy
# leaky: pandas==2.0.3 numpy==1.26.4
# mended: pandas==2.1.1 numpy==1.26.4
# met in: pandas-dev/pandas#54352
# holder: -
# cause: host-only container-grows
# rate: ~200 B/copy
import numpy as np
import pandas as pd

frame = pd.DataFrame(np.arange(60.0).reshape(10, 6), columns=list("abcdef"))
total = 0.0
for i in range(60_000):
    copy = frame.copy()  # leak
    series = frame.index.to_series()  # leak
    total += copy.iat[i % 10, i % 6] + series.iat[i % 10]
print(f"total {total:.1f}")
