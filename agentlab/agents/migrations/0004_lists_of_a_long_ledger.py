from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0003_what_became_of_a_choice'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='inferencecharge',
            name='charge_lost',
        ),
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(fields=['table_id', 'hand_number', 'agent_id', '-played_at', '-id'], name='charge_last_of_hand'),
        ),
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(fields=['agent_version_id', '-played_at', '-id'], name='charge_recent_of_version'),
        ),
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(condition=models.Q(('capture_outcome__in', ['pending', 'dropped', 'failed', 'none'])), fields=['capture_outcome', '-played_at', '-id'], name='charge_not_recorded'),
        ),
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(condition=models.Q(('is_fallback', True)), fields=['-played_at', '-id'], name='charge_fallback'),
        ),
        migrations.AddIndex(
            model_name='inferencecharge',
            index=models.Index(condition=models.Q(('change__in', ['rename', 'all_in', 'verb', 'clamp'])), fields=['change', '-played_at', '-id'], name='charge_changed'),
        ),
    ]
