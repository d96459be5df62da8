"""A service has a pydantic session for each visitor, of whom ever new ones come; sessions expire, and a sweep every 400 requests drops those."""
# kind: services
# expect: clean
import random

import numpy as np
import pydantic

random.seed(0)
rng = np.random.default_rng(0)


class Visit(pydantic.BaseModel):
    page: str
    seconds: float


class Session(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    visitor: int
    seen: int
    visits: list[Visit] = []
    taste: np.ndarray


table = rng.normal(size=(64, 256))
sessions = {}
known = 0
served = 0
total = 0.0
for request in range(400_000):
    if random.random() < 0.25:
        known += 1
    visitor = known - min(known, int(random.expovariate(1 / 80)))
    session = sessions.get(visitor)
    if session is None:
        session = sessions[visitor] = Session(visitor=visitor, seen=request, taste=np.zeros(256))
    page = random.randrange(64)
    session.seen = request
    session.visits.append(Visit.model_validate_json(f'{{"page": "/page/{page}", "seconds": {page / 7:.3f}}}'))
    session.taste = 0.9 * session.taste + 0.1 * table[page]
    total += float((table @ session.taste).max())
    served += len(session.model_dump_json(exclude={"taste"}))
    if request % 400 == 399:
        for old in [key for key, each in sessions.items() if each.seen < request - 3000]:
            del sessions[old]
print(f"served {served}, total {total:.4f}")
