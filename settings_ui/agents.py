"""Agents: list, make, change, delete (R24)."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from conch import tools
from conch.accounts import lists
from conch.copy import tasks as copy
from conch.models import Agent, Conversation
from conch.tasks import agents
from conch.tasks.agents import Beginning
from conch.turns.errors import NotHere
from settings_ui.task_forms import AgentForm, account_names
from settings_ui.viewing import HttpRequest, Visit, page, visit

PAGE = "/settings/agents"


@require_safe
def agents_page(request: HttpRequest) -> HttpResponse:
    """The list."""
    here = visit(request)
    accounts = agents.accounts_of(here.person.pk)
    names = dict(account_names(accounts))
    servers = {server.slug: server.name for server in tools.connected(here.person.pk)}
    rows = [row(agent, agents.beginning(accounts, agent), names, servers) for agent in agents.agents_of(here.person.pk)]
    return page(request, "agents.html", {"agents": rows}, current=PAGE)


def row(agent: Agent, how: Beginning, names: dict[str, str], servers: dict[str, str]) -> dict[str, Any]:
    """An agent for the list: who answers its chats, with which tools, and what is in the way."""
    who = names.get(how.account, how.account) if agent.account else names[""]
    return {
        "agent": agent,
        "who": f"{who}. {agent.model}" if agent.model else who,
        "told": copy.beginning_of(agent.instructions),
        "tools": ", ".join(servers[slug] for slug in agent.tools if slug in servers),
        "trouble": how.trouble,
    }


@require_http_methods(["GET", "HEAD", "POST"])
def new_agent(request: HttpRequest) -> HttpResponse:
    """Make one."""
    here = visit(request)
    lists.shown_to(here.person.pk)
    accounts = agents.accounts_of(here.person.pk)
    form = AgentForm(request.POST or None, accounts=accounts, servers=tools.connected(here.person.pk))
    if request.method == "POST" and form.is_valid():
        Agent.objects.create(person=here.person, created_at=timezone.now(), **form.cleaned_data)
        messages.success(request, f"Saved. {form.cleaned_data['name']} is ready.")
        return redirect("settings-agents")
    return show(request, None, form)


@require_http_methods(["GET", "HEAD", "POST"])
def agent_page(request: HttpRequest, agent_id: int) -> HttpResponse:
    """Change one; chats that it started go on as they are."""
    here = visit(request)
    lists.shown_to(here.person.pk)
    agent, accounts = own(here, agent_id), agents.accounts_of(here.person.pk)
    kept = {name: getattr(agent, name) for name in ("name", "instructions", "account", "model", "tools")}
    servers = tools.connected(here.person.pk)
    form = AgentForm(request.POST or None, initial=kept, accounts=accounts, servers=servers)
    if request.method == "POST" and form.is_valid():
        Agent.objects.filter(pk=agent.pk).update(**form.cleaned_data)
        messages.success(request, "Saved. Chats that start from now on are so.")
        return redirect("settings-agents")
    return show(request, agent, form)


def show(request: HttpRequest, agent: Agent | None, form: AgentForm) -> HttpResponse:
    """The form, with what was typed and what is wrong beside the field."""
    context = {"agent": agent, "form": form, "models": form.models}
    return page(request, "agents_form.html", context, current=PAGE, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def delete_agent(request: HttpRequest, agent_id: int) -> HttpResponse:
    """Say what deleting it means; on a press, do it."""
    here = visit(request)
    agent = own(here, agent_id)
    if request.method == "POST":
        agents.delete(here.person, agent)
        messages.success(request, f"{agent.name} is deleted.")
        return redirect("settings-agents")
    chats = Conversation.objects.filter(person=here.person, agent=agent.pk, deleted_at=None).count()
    context = {
        "name": agent.name,
        "said": copy.deleting(agent.routines.filter(active=True).count(), chats),
        "back": "settings-agents",
        "back_name": "Agents",
        "keep": ("settings-agent", agent.pk),
    }
    return page(request, "tasks_sure.html", context, current=PAGE)


def own(here: Visit, agent_id: int) -> Agent:
    """The person's agent, or 404."""
    try:
        found = agents.own(here.person.pk, agent_id)
    except NotHere as error:
        raise Http404 from error
    assert found is not None
    return found
