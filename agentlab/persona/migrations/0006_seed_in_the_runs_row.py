"""A run's row has the seed: a menu of many studies cannot read each one's definition, which may be megabytes."""

import msgspec
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class Seeded(msgspec.Struct):
    seed: int


def fill(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    runs = apps.get_model("persona", "StudyRun").objects
    for sha256, data in apps.get_model("persona", "StudyDefinition").objects.values_list("sha256", "data").iterator(1):
        try:
            seed = msgspec.msgpack.decode(bytes(data), type=Seeded).seed
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # it stays unknown
        if -(2**63) <= seed < 2**63:
            runs.filter(study_sha256=sha256).update(seed=seed)


class Migration(migrations.Migration):
    dependencies = [("persona", "0005_reactions_counted_by_the_runner")]

    operations = [
        migrations.AddField(
            model_name="studyrun",
            name="seed",
            field=models.BigIntegerField(
                editable=False, help_text="of its file; null where that cannot be read", null=True
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
