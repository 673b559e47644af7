"""Signing in to tool servers: what is kept of a sign-in, and those that are under way."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conch", "0011_tool_lists_read_again"),
    ]

    operations = [
        migrations.AddField("toolserver", "sealed_sign_in", models.TextField(blank=True, default="")),
        migrations.CreateModel(
            name="ToolSignIn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("session", models.CharField(max_length=64)),
                ("sealed", models.TextField()),
                ("expires_at", models.DateTimeField()),
                (
                    "server",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sign_in", to="conch.toolserver"
                    ),
                ),
            ],
        ),
    ]
