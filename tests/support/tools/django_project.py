"""A small Django project, written into a folder: its two migrations come of `makemigrations`; and
tests of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SETTINGS: Final = """
import os
SECRET_KEY = "of a test"
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1",
    "PORT": os.environ["PGPORT"], "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"],
    "TEST": {"NAME": os.environ["PGDATABASE"]},
}}
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.sites", "store"]
USE_TZ = True
SITE_ID = 1
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
"""

MODELS: Final = (
    """
from django.contrib.auth.models import User
from django.db import models

class Shelf(models.Model):
    name = models.CharField(max_length=50, unique=True)
    slug = models.SlugField()

class Ware(models.Model):
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    made = models.DateTimeField(auto_now_add=True)
    data = models.JSONField(default=dict)
    count = models.IntegerField(default=0)
    ratio = models.FloatField(null=True)
    uid = models.UUIDField(null=True)

    class Meta:
        indexes = [models.Index(fields=["-made"], name="made_late")]
""",
    """
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Lower

class Shelf(models.Model):
    name = models.CharField(max_length=80, unique=True)
    slug = models.SlugField(unique=True)
    inside = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)

class Ware(models.Model):
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE)
    title = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    made = models.DateTimeField(auto_now_add=True)
    data = models.JSONField(default=dict)
    count = models.BigIntegerField(default=0)
    ratio = models.FloatField(default=0.5)
    note = models.TextField(default="")

    class Meta:
        indexes = [models.Index(fields=["made", "-price"], name="made_price")]
        constraints = [
            models.CheckConstraint(condition=models.Q(price__gte=0), name="price_ok"),
            models.UniqueConstraint(fields=["shelf", "title"], name="one_title"),
            models.UniqueConstraint(Lower("title"), name="title_whatever_case"),
        ]

class Bill(models.Model):
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True)
    wares = models.ManyToManyField(Ware)
""",
)

FILL: Final = """
from store.models import *
shelf = Shelf.objects.create(name="first", slug="first")
for number in range(3):
    Ware.objects.create(shelf=shelf, name=f"w{number}", price=number)
"""

MAKE_MIGRATIONS: Final = """
from django.core.management import execute_from_command_line
from django.db.migrations.questioner import InteractiveMigrationQuestioner as Questioner

Questioner.ask_rename = lambda self, *about: True
Questioner.ask_not_null_alteration = lambda self, *about: 0.5
Questioner.ask_unique_callable_default_addition = lambda self, *about: None
execute_from_command_line(["manage", "makemigrations", "store"])
"""

TESTS: Final = """
from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction
from django.test import TestCase, TransactionTestCase
from store.models import *

class InOneTransaction(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.shelf = Shelf.objects.create(name="of tests", slug="of-tests")

    def test_savepoints(self):
        Ware.objects.create(shelf=self.shelf, title="x", price="1.50")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Shelf.objects.create(name="of tests", slug="other")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Ware.objects.create(shelf=self.shelf, title="y", price="-1")
        Ware.objects.bulk_create([Ware(shelf=self.shelf, title=f"t{n}", price=n) for n in range(9)])
        mine = Ware.objects.filter(shelf__name="of tests")
        self.assertEqual(mine.aggregate(models.Sum("price"))["price__sum"], 37.5)
        locked = mine.select_for_update().filter(title="x")
        self.assertEqual(list(locked.values_list("count")), [(0,)])
        Ware.objects.update_or_create(title="x", shelf=self.shelf, defaults={"count": 3})
        self.assertEqual(mine.get(title="x").count, 3)

    def test_nothing_is_left_by_the_other(self):
        self.assertEqual(Ware.objects.filter(shelf__name="of tests").count(), 0)
        User.objects.create_user("bob", "b@c.d", "secret")
        self.assertTrue(self.client.login(username="bob", password="secret"))

class Committed(TransactionTestCase):
    def test_flush(self):
        Shelf.objects.create(name="gone", slug="gone")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Ware.objects.create(shelf_id=999, title="z", price=1)
"""


def write_project(folder: Path) -> None:
    """Write it as it is before its first migration."""
    app = folder / "store"
    (app / "migrations").mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "migrations" / "__init__.py").touch()
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "make_migrations.py").write_text(MAKE_MIGRATIONS)
    show_stage(folder, 0)


def show_stage(folder: Path, stage: int) -> None:
    """Let the models be those of a stage, from 0."""
    (folder / "store" / "models.py").write_text(MODELS[stage])


def write_tests(folder: Path) -> None:
    """Write the project's own tests, which are of its last stage."""
    (folder / "store" / "tests.py").write_text(TESTS)
