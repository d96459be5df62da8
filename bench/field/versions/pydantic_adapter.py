"""A TypeAdapter made for each request stays in memory with pydantic 2.5.2."""
# kind: services
# leaky: pydantic==2.5.2
# mended: pydantic==2.5.3
# met in: pydantic/pydantic#8397
# holder: -
# cause: host-only cache-without-bound
# rate: ~20000 B/request
from pydantic import BaseModel, TypeAdapter


class Bar(BaseModel):
    size: int = 1


class Foo(BaseModel):
    children: list["Foo"]
    bar: Bar


def handle(size):
    adapter = TypeAdapter(list[Foo])  # leak
    return adapter.validate_python([{"children": [], "bar": Bar(size=size)}])  # leak


total = 0
for request in range(12_000):
    total += handle(request)[0].bar.size
print(f"total {total}")
