"""Addresses of the chat."""

from django.urls import path

from conch import ids  # noqa: F401  makes <id:…> known in addresses
from conch.chat import editing, nacre, pages, stream, views

urlpatterns = [
    path("", pages.home, name="home"),
    path("chats", pages.chats, name="chats"),
    path("begin", views.begin, name="begin"),
    path("c/<id:conversation_id>", pages.chat, name="chat"),
    path("c/<id:conversation_id>/now", pages.now, name="now"),
    path("c/<id:conversation_id>/messages", views.send, name="send"),
    path("c/<id:conversation_id>/continue", views.go_on, name="continue"),
    path("c/<id:conversation_id>/switch-back", views.switch_back, name="switch-back"),
    path("c/<id:conversation_id>/carry-on", views.carry_on, name="carry-on"),
    path("c/<id:conversation_id>/account", views.account, name="account"),
    path("c/<id:conversation_id>/tools", views.tools, name="tools"),
    path("c/<id:conversation_id>/cap", views.cap, name="cap"),
    path("c/<id:conversation_id>/title", views.title, name="title"),
    path("c/<id:conversation_id>/delete", views.delete, name="delete"),
    path("c/<id:conversation_id>/restore", views.restore, name="restore"),
    path("c/<id:conversation_id>/export.md", pages.export_markdown, name="export-markdown"),
    path("c/<id:conversation_id>/export.json", pages.export_json, name="export-json"),
    path("turns/<id:turn_id>/stream", stream.stream, name="stream"),
    path("turns/<id:turn_id>/stop", views.stop, name="stop"),
    path("turns/<id:turn_id>/cancel", views.cancel, name="cancel"),
    path("turns/<id:turn_id>/retry", views.retry, name="retry"),
    path("turns/<id:turn_id>/answer-with", views.answer_with, name="answer-with"),
    path("turns/<id:turn_id>/tools/<id:call_id>", views.allow, name="allow"),
    path("turns/<id:turn_id>/send-now", views.send_now, name="send-now"),
    path("turns/<id:turn_id>/edit", editing.edit, name="edit"),
    path("turns/<id:turn_id>/resend", editing.resend, name="resend"),
    path("turns/<id:turn_id>/answer", pages.answer, name="answer"),
    path("turns/<id:turn_id>/earlier", editing.earlier, name="earlier"),
    path("nacre", nacre.nacre, name="nacre"),
    path("attachments/<id:attachment_id>", pages.attachment, name="attachment"),
]
