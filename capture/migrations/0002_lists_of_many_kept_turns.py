from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('capture', '0001_initial'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='agentcallrecord',
            index=models.Index(fields=['agent_id', 'table_id', 'hand_number'], name='call_record_hands_of_agent'),
        ),
        migrations.AddIndex(
            model_name='agentcallrecord',
            index=models.Index(fields=['table_id', 'hand_number', 'agent_id', '-pinned_at', '-id'], name='call_record_last_of_hand'),
        ),
        migrations.AddIndex(
            model_name='agentcallrecord',
            index=models.Index(fields=['agent_version_id', '-pinned_at', '-id'], name='call_record_of_version'),
        ),
        migrations.AddIndex(
            model_name='agentcallrecord',
            index=models.Index(fields=['hand_number', '-pinned_at', '-id'], name='call_record_of_hand'),
        ),
    ]
