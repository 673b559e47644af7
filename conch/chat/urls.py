"""Addresses of the chat."""

from django.urls import path

from conch.chat import editing, nacre, pages, stream, views

urlpatterns = [
    path("", pages.home, name="home"),
    path("chats", pages.chats, name="chats"),
    path("begin", views.begin, name="begin"),
    path("c/<int:conversation_id>", pages.chat, name="chat"),
    path("c/<int:conversation_id>/now", pages.now, name="now"),
    path("c/<int:conversation_id>/messages", views.send, name="send"),
    path("c/<int:conversation_id>/continue", views.go_on, name="continue"),
    path("c/<int:conversation_id>/switch-back", views.switch_back, name="switch-back"),
    path("c/<int:conversation_id>/carry-on", views.carry_on, name="carry-on"),
    path("c/<int:conversation_id>/account", views.account, name="account"),
    path("c/<int:conversation_id>/tools", views.tools, name="tools"),
    path("c/<int:conversation_id>/cap", views.cap, name="cap"),
    path("c/<int:conversation_id>/title", views.title, name="title"),
    path("c/<int:conversation_id>/delete", views.delete, name="delete"),
    path("c/<int:conversation_id>/restore", views.restore, name="restore"),
    path("c/<int:conversation_id>/export.md", pages.export_markdown, name="export-markdown"),
    path("c/<int:conversation_id>/export.json", pages.export_json, name="export-json"),
    path("turns/<int:turn_id>/stream", stream.stream, name="stream"),
    path("turns/<int:turn_id>/stop", views.stop, name="stop"),
    path("turns/<int:turn_id>/cancel", views.cancel, name="cancel"),
    path("turns/<int:turn_id>/retry", views.retry, name="retry"),
    path("turns/<int:turn_id>/answer-with", views.answer_with, name="answer-with"),
    path("turns/<int:turn_id>/tools/<int:call_id>", views.allow, name="allow"),
    path("turns/<int:turn_id>/send-now", views.send_now, name="send-now"),
    path("turns/<int:turn_id>/edit", editing.edit, name="edit"),
    path("turns/<int:turn_id>/resend", editing.resend, name="resend"),
    path("turns/<int:turn_id>/earlier", editing.earlier, name="earlier"),
    path("nacre", nacre.nacre, name="nacre"),
    path("attachments/<int:attachment_id>", pages.attachment, name="attachment"),
]
