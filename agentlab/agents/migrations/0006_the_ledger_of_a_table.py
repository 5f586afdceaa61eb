from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0005_hands_with_marks'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(fields=['table_id', '-played_at', '-id'], name='charge_recent_of_table'),
        ),
    ]
