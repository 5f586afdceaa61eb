from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0002_whispers_heard_and_withdrawn")]

    operations = [
        migrations.AddField(
            model_name="inferencecharge",
            name="change",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "nothing"),
                    ("rename", "Rename"),
                    ("all_in", "All In"),
                    ("verb", "Verb"),
                    ("clamp", "Clamp"),
                ],
                max_length=20,
                null=True,
            ),
        ),
    ]
