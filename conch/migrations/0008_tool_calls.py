"""The calls of tools that a model asked for in a turn."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conch", "0007_tool_servers"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run", models.IntegerField()),
                ("account", models.CharField(max_length=64)),
                ("server", models.CharField(max_length=64)),
                ("tool", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=64)),
                ("title", models.CharField(blank=True, default="", max_length=300)),
                ("arguments", models.JSONField(blank=True, default=dict)),
                ("digest", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "Asked"),
                            ("allowed", "Allowed"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("declined", "Declined"),
                        ],
                        max_length=8,
                    ),
                ),
                ("outcome", models.TextField(blank=True, default="")),
                ("asked_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(default=None, null=True)),
                ("ended_at", models.DateTimeField(default=None, null=True)),
                ("forgotten", models.BooleanField(default=False)),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="calls", to="conch.turn"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("forgotten", False)), fields=("turn", "name", "digest"), name="call_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["asked", "allowed", "running", "done", "failed", "declined"])
                        ),
                        name="known_call_state",
                    ),
                ],
            },
        ),
    ]
