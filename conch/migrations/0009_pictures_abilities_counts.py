"""Images kept once for each person; what models take beyond their lists; what messages come to in tokens."""

from hashlib import sha256
from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def keep_once(apps: Any, schema_editor: Any) -> None:
    """Every image kept once for its person; each attachment names it. One at a time: images are large."""
    alias = schema_editor.connection.alias
    attachments = apps.get_model("conch", "Attachment").objects.using(alias)
    pictures = apps.get_model("conch", "Picture").objects.using(alias)
    for pk in list(attachments.order_by("pk").values_list("pk", flat=True)):
        row = attachments.get(pk=pk)
        data = bytes(row.data)
        picture, _ = pictures.get_or_create(
            person_id=row.person_id,
            sha256=sha256(data).hexdigest(),
            defaults={
                "media_type": row.media_type,
                "data": data,
                "width": row.width,
                "height": row.height,
                "created_at": row.created_at,
            },
        )
        attachments.filter(pk=pk).update(picture=picture)
    if schema_editor.connection.vendor == "postgresql":
        # What was put off to the commit is checked now: a table with checks to come can't be changed.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def keep_each(apps: Any, schema_editor: Any) -> None:
    """Back: each attachment has its image again."""
    attachments = apps.get_model("conch", "Attachment").objects.using(schema_editor.connection.alias)
    for pk in list(attachments.order_by("pk").values_list("pk", flat=True)):
        picture = attachments.select_related("picture").get(pk=pk).picture
        columns = ("media_type", "sha256", "data", "width", "height")
        attachments.filter(pk=pk).update(**{name: getattr(picture, name) for name in columns})


class Migration(migrations.Migration):
    dependencies = [
        ("conch", "0008_tool_calls"),
    ]

    operations = [
        migrations.AddField("turn", "text_tokens", models.IntegerField(default=None, null=True)),
        migrations.AddField("turn", "answer_tokens", models.IntegerField(default=None, null=True)),
        migrations.CreateModel(
            name="Ability",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=200)),
                ("tools", models.BooleanField(default=None, null=True)),
                ("images", models.BooleanField(default=None, null=True)),
                ("fits", models.BigIntegerField(default=None, null=True)),
                ("tools_set", models.BooleanField(default=None, null=True)),
                ("images_set", models.BooleanField(default=None, null=True)),
                ("context_set", models.BigIntegerField(default=None, null=True)),
                ("ratio", models.FloatField(default=None, null=True)),
                ("at", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="abilities", to="conch.account"
                    ),
                ),
            ],
            options={"verbose_name_plural": "abilities"},
        ),
        migrations.AddConstraint(
            "ability", models.UniqueConstraint(fields=["account", "model"], name="ability_once_a_model")
        ),
        migrations.CreateModel(
            name="Picture",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64)),
                ("media_type", models.CharField(max_length=60)),
                ("data", models.BinaryField()),
                ("width", models.IntegerField(default=None, null=True)),
                ("height", models.IntegerField(default=None, null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pictures",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            "picture", models.UniqueConstraint(fields=["person", "sha256"], name="picture_once_a_person")
        ),
        migrations.AddField(
            "attachment",
            "picture",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="attachments",
                to="conch.picture",
            ),
        ),
        # For the way back only: what is taken away below comes back empty, then is filled.
        migrations.AlterField("attachment", "data", models.BinaryField(null=True)),
        migrations.AlterField("attachment", "media_type", models.CharField(default="", max_length=60)),
        migrations.AlterField("attachment", "sha256", models.CharField(default="", max_length=64)),
        migrations.RunPython(keep_once, keep_each),
        migrations.AlterField(
            "attachment",
            "picture",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="attachments", to="conch.picture"
            ),
        ),
        migrations.RemoveField("attachment", "data"),
        migrations.RemoveField("attachment", "media_type"),
        migrations.RemoveField("attachment", "sha256"),
        migrations.RemoveField("attachment", "width"),
        migrations.RemoveField("attachment", "height"),
    ]
