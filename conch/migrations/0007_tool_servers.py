"""MCP servers that people connected, and what each of their tools may do."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conch", "0006_search"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolServer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.CharField(max_length=24)),
                ("name", models.CharField(max_length=100)),
                ("kind", models.CharField(choices=[("stdio", "Stdio"), ("http", "Http")], max_length=5)),
                ("command", models.JSONField(blank=True, default=list)),
                ("url", models.CharField(blank=True, default="", max_length=500)),
                ("sealed_environment", models.TextField(blank=True, default="")),
                ("sealed_headers", models.TextField(blank=True, default="")),
                ("tools", models.JSONField(blank=True, default=list)),
                ("left_out", models.IntegerField(default=0)),
                ("listed_at", models.DateTimeField(default=None, null=True)),
                ("trouble", models.JSONField(blank=True, default=dict)),
                ("tried_at", models.DateTimeField(default=None, null=True)),
                ("created_at", models.DateTimeField()),
                ("removed_at", models.DateTimeField(default=None, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_servers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolPermission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tool", models.CharField(max_length=200)),
                (
                    "permission",
                    models.CharField(choices=[("ask", "Ask"), ("always", "Always"), ("never", "Never")], max_length=6),
                ),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="permissions", to="conch.toolserver"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="toolserver",
            constraint=models.UniqueConstraint(fields=("person", "slug"), name="one_tool_server"),
        ),
        migrations.AddConstraint(
            model_name="toolserver",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["stdio", "http"])), name="known_tool_server_kind"
            ),
        ),
        migrations.AddConstraint(
            model_name="toolpermission",
            constraint=models.UniqueConstraint(fields=("server", "tool"), name="one_permission_a_tool"),
        ),
        migrations.AddConstraint(
            model_name="toolpermission",
            constraint=models.CheckConstraint(
                condition=models.Q(("permission__in", ["ask", "always", "never"])), name="known_tool_permission"
            ),
        ),
    ]
