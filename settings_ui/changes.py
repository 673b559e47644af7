"""After a change of preferences, budget or accounts: turns that wait ask their route again (R16)."""

from asgiref.sync import async_to_sync

from conch.models import Person


def ask_again(person: Person) -> None:
    """Have the person's waiting turns ask their route again."""
    from conch.turns import doors

    async_to_sync(doors.asked_again)(person.pk)


def everybody_asks_again() -> None:
    """The same for everybody who waits: the model on this computer, which is everybody's, is another one."""
    from conch.turns import doors, waiting

    for person_id in waiting.people():
        async_to_sync(doors.asked_again)(person_id)
