import time, pytest
from conch.db import look
from conch.turns.begin import begin
from conch.turns.accept import accept
from conch.turns.gathering import RunSoFar
from conch.turns.process import this_process
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from tests.turns.conftest import *
pytestmark = pytest.mark.django_db(transaction=True)
def test_q(world):
    for n in range(3): world.account("codex", f"codex-{n}")
    world.account("openai")
    times=[]
    for i in range(8):
        chat = world.chat("codex-0")
        now=world.time.now()
        with transaction.atomic():
            t0=time.perf_counter(); a=accept(world.person.pk, chat.pk, "hi", now); t1=time.perf_counter()
        with transaction.atomic():
            if i==7:
                with CaptureQueriesContext(connection) as c: begin(a.turn_id, this_process(), RunSoFar(), now)
            else:
                t2=time.perf_counter(); begin(a.turn_id, this_process(), RunSoFar(), now); times.append((round((t1-t0)*1e3,1),round((time.perf_counter()-t2)*1e3,1)))
    print(times)
    for q in c.captured_queries: print(q['time'], q['sql'][:140])
