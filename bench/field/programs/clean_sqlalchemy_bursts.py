"""SQLAlchemy serves bursts of queries with sessions from a pool; its cache of compiled statements fills to its bound."""
# kind: services
# expect: clean
import random

from sqlalchemy import Integer, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import StaticPool

random.seed(0)


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String(40))
    price: Mapped[int] = mapped_column(Integer)
    stock: Mapped[int] = mapped_column(Integer)


engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all(Item(name=f"item {i}", price=i % 97, stock=i % 13) for i in range(2000))
    session.commit()
total = 0
for request in range(6000):
    with Session(engine) as session:
        columns = random.sample([Item.id, Item.name, Item.price, Item.stock], random.randint(1, 4))
        query = select(*columns).where(Item.price == random.randrange(97)).limit(random.randrange(5, 50))
        for condition in random.sample([Item.stock > 3, Item.stock < 11, Item.id % 2 == 0, Item.name.like("%1%")], random.randint(0, 3)):
            query = query.where(condition)
        total += len(session.execute(query).all())
        if request % 10 == 0:
            item = session.get(Item, random.randrange(1, 2000))
            item.stock += 1
            session.commit()
            total += session.scalar(select(func.count()).select_from(Item).where(Item.stock > 5))
print(f"total {total}")
