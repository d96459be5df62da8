"""A web service's sessions of SQLAlchemy are scoped by request, and the registry keeps each; --fixed removes it after the answer."""
# kind: services
# holder: registry
# cause: cache-without-bound container-grows release-forgotten
# rate: ~6500 B/request
import contextvars
import itertools
import sys

from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, scoped_session, sessionmaker
from sqlalchemy.pool import StaticPool

FIXED = "--fixed" in sys.argv
request_id = contextvars.ContextVar("request_id", default=0)


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    visits: Mapped[int] = mapped_column(default=0)
    orders: Mapped[list["Order"]] = relationship(back_populates="customer")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"))
    customer: Mapped[Customer] = relationship(back_populates="orders")


engine = create_engine("sqlite://", poolclass=StaticPool)
Base.metadata.create_all(engine)
db = scoped_session(sessionmaker(engine), scopefunc=request_id.get)

with sessionmaker(engine)() as setup:
    for number in range(1, 101):
        setup.add(Customer(id=number, name=f"customer {number}", orders=[Order(amount=number * i % 97) for i in range(5)]))
    setup.commit()


def answer(number):
    customer = db.scalars(select(Customer).where(Customer.id == number % 100 + 1)).one()  # leak
    customer.visits += 1
    amount = sum(order.amount for order in customer.orders)
    db.commit()
    return amount + customer.visits  # leak


total = 0
for number in itertools.islice(itertools.count(1), 4500):
    request_id.set(number)
    total += answer(number)
    if FIXED:
        db.remove()
print(f"total {total}")
