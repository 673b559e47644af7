"""Agents: how a chat starts (R24); the route treats it as any other. An account that is gone is said first (R36)."""

from dataclasses import dataclass, field

from conch.accounts.defaults import LOCAL, OUT, Start, connected, local_model, start_of
from conch.copy import tasks as copy
from conch.models import Account, Agent, Conversation, Person, Preferences, Routine
from conch.turns.errors import NotHere


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a chat begins: who answers it, what it is told, and what is in the way (`trouble`, a sentence; "" nothing).

    `replaced`: the person's own default is gone or signed out, so another one stands in.
    """

    account: str
    model: str
    agent: Agent | None = None
    trouble: str = ""
    replaced: bool = False

    def columns(self) -> dict[str, object]:
        """The columns of a conversation that begins so."""
        agent = self.agent
        told = {} if agent is None else {"agent": agent.pk, "instructions": agent.instructions, "tools": agent.tools}
        return {"account": self.account, "model": self.model, **told}


@dataclass(frozen=True, slots=True)
class Accounts:
    """A person's accounts when a chat begins: those that are there, and what the others were called."""

    there: tuple[Account, ...]
    default: Start
    gone: dict[str, str] = field(default_factory=dict)

    def find(self, slug: str) -> Account | None:
        """The connected account of that slug."""
        return next((account for account in self.there if account.slug == slug), None)


def accounts_of(person_id: int) -> Accounts:
    """That person's accounts, in three queries."""
    there = connected(person_id)
    gone = Account.objects.filter(person_id=person_id).exclude(removed_at=None).values_list("slug", "label")
    return Accounts(tuple(there), start_of(Preferences.objects.get(pk=person_id), there), dict(gone))


def beginning(accounts: Accounts, agent: Agent | None, account: str = "", model: str = "") -> Beginning:
    """How a chat begins with that agent: an account and a model that were asked for come before its own."""
    slug = account or (agent.account if agent is not None else "")
    if not slug:
        default = accounts.default
        wanted = model or (agent.model if agent is not None else "") or default.model
        return Beginning(default.account, wanted, agent, replaced=default.replaced)
    model = model or (agent.model if agent is not None and slug == agent.account else "")
    if slug == LOCAL:
        return Beginning(LOCAL, model or local_model(), agent)
    found = accounts.find(slug)
    if found is None:
        label = accounts.gone.get(slug, slug)
        return Beginning(slug, model, agent, copy.account_gone(label, agent.name if agent else ""))
    trouble = copy.account_signed_out(found.label, agent.name if agent else "") if found.state in OUT else ""
    return Beginning(slug, model or found.model, agent, trouble)


def own(person_id: int, agent_id: int | None) -> Agent | None:
    """The person's agent; None for no id. Raises NotHere."""
    if agent_id is None:
        return None
    agent = Agent.objects.filter(pk=agent_id, person_id=person_id).first()
    if agent is None:
        raise NotHere
    return agent


def agents_of(person_id: int) -> list[Agent]:
    """The person's agents, by name."""
    return sorted(Agent.objects.filter(person_id=person_id), key=lambda agent: (agent.name.casefold(), agent.pk))


def delete(person: Person, agent: Agent) -> None:
    """Delete an agent. Its chats go on; its routines are switched off, rather than run as something else."""
    Routine.objects.filter(person=person, agent=agent).update(active=False, next_at=None)
    Conversation.objects.filter(person=person, agent=agent.pk).update(agent=None)
    agent.delete()
