"""Schemas made of models, and rows by them: walk.py URL"""

from __future__ import annotations

import sys

from tortoise import Tortoise, fields, run_async
from tortoise.exceptions import IntegrityError
from tortoise.expressions import F, Q
from tortoise.functions import Count, Sum
from tortoise.models import Model
from tortoise.transactions import in_transaction


class Event(Model):
    """What people take part in."""

    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=40, unique=True, description="how it is called")
    places = fields.SmallIntField(default=10)
    price = fields.DecimalField(max_digits=8, decimal_places=2, null=True)
    made = fields.DatetimeField(auto_now_add=True)
    day = fields.DateField(null=True)
    extra = fields.JSONField(default={})
    members: fields.ManyToManyRelation[Member] = fields.ManyToManyField("models.Member")


class Member(Model):
    id = fields.UUIDField(primary_key=True)
    word = fields.CharField(max_length=40, db_index=True)
    note = fields.TextField(null=True)
    ratio = fields.FloatField(default=0.5)
    is_new = fields.BooleanField(default=True)
    boss: fields.ForeignKeyNullableRelation[Member] = fields.ForeignKeyField(
        "models.Member", null=True, on_delete=fields.SET_NULL
    )


async def walk(url: str) -> None:
    await Tortoise.init(db_url=url, modules={"models": ["__main__"]})
    await Tortoise.generate_schemas()
    await Tortoise.generate_schemas(safe=True)
    boss = await Member.create(word="boss")
    await Member.bulk_create([Member(word=f"w{n}", boss=boss) for n in range(5)])
    event = await Event.create(name="fair", price="9.50", extra={"a": [1, None]})
    await event.members.add(*await Member.filter(boss=boss))
    try:
        await Event.create(name="fair")
    except IntegrityError:
        pass
    else:
        raise AssertionError("two of one name")
    async with in_transaction() as connection:
        await Event.filter(name="fair").using_db(connection).update(places=F("places") - 1)
        locked = await Event.filter(name="fair").using_db(connection).select_for_update().get()
        locked.day = "2026-01-02"
        await locked.save(using_db=connection)
    found = await Event.annotate(count=Count("members"), all=Sum("members__ratio")).get(name="fair")
    words = (
        await Member.filter(Q(word__icontains="W") | Q(boss=None))
        .order_by("word")
        .values_list("word", flat=True)
    )
    made, _ = await Event.update_or_create({"places": 3}, name="other")
    await boss.delete()
    left = await Member.filter(boss=None).count()
    prefetched = await Event.all().order_by("id").prefetch_related("members")
    print("found", found.places, found.count, found.all, found.extra, "words", len(words))
    print("made", made.places, "left", left, "members", [len(each.members) for each in prefetched])
    await Tortoise.close_connections()


run_async(walk(sys.argv[1].partition("?")[0]))
