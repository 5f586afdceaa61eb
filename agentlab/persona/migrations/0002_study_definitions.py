"""Definitions move to a table of their own."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def move(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    definitions = apps.get_model("persona", "StudyDefinition").objects
    for sha256, data in apps.get_model("persona", "StudyRun").objects.values_list("study_sha256", "definition"):
        definitions.get_or_create(sha256=sha256, defaults={"data": data})


class Migration(migrations.Migration):
    dependencies = [("persona", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="StudyDefinition",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("data", models.BinaryField()),
            ],
            options={"db_table": "study_definitions"},
        ),
        migrations.RunPython(move, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField(model_name="studyrun", name="definition"),
    ]
