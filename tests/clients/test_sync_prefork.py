"""The synchronous client below gunicorn and Celery, which fork what they loaded, and Django, which loads it anew."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.clients.fake_hq import instance
from tests.clients.telling import History, TellingReplica
from tests.judges.tools import packages
from tests.judges.verdict import Missing
from tests.support.reserved_port import quiet_port
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

APPLICATION = """
import os
from hqclient.sync import Client, Discovery

ADDRESSES = os.environ["REPLICAS"].split(",")
HQ = Client(ADDRESSES, timeout_s=30)
HQ.get("web-1")  # connections and a thread of before the fork
WEB = Discovery(ADDRESSES).service("web", port="http").__enter__()
WEB.ready(30)

def answer():
    WEB.ready(30)
    return f"{os.getpid()} {HQ.get('web-1').instance.meta.id} {WEB.pick().instance_id}"
"""
GUNICORN = """
from application import answer

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer().encode()]
"""
CELERY = """
import os
from pathlib import Path
from celery import Celery
from application import answer

app = Celery(broker="filesystem://")
app.conf.broker_transport_options = {{"data_folder_in": "{folder}/queue", "data_folder_out": "{folder}/queue"}}

@app.task(name="tell", ignore_result=True)
def tell():
    with Path("{folder}/answers", str(os.getpid())).open("a") as to:
        print(answer(), file=to)
"""
DJANGO = """
from django.apps import AppConfig
from django.http import HttpResponse
from django.urls import path

class Pages(AppConfig):
    name = "pages"

    def ready(self):
        from application import answer
        self.answer = answer

def show(request):
    from django.apps import apps
    return HttpResponse(apps.get_app_config("pages").answer())

urlpatterns = [path("", show)]
"""
MANAGE = """
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    DEBUG=True, SECRET_KEY="no", ALLOWED_HOSTS=["*"], ROOT_URLCONF="pages", INSTALLED_APPS=["pages.Pages"]
)
execute_from_command_line()
"""
# Sent before a worker is there: this broker lets a reader see half a file.
SEND = """
from celery import Celery
app = Celery(broker="filesystem://")
app.conf.broker_transport_options = {{"data_folder_in": "{folder}/queue", "data_folder_out": "{folder}/queue"}}
for _ in range(12):
    app.send_task("tell")
"""


@asynccontextmanager
async def program(
    *words: str, folder: Path, replicas: list[TellingReplica], ends: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run it in this folder; at the end SIGTERM, which it has to follow by itself with code 0, if it does not end."""
    path = os.pathsep.join([str(folder), str(packages("prefork")), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "REPLICAS": ",".join(each.address for each in replicas)}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *words, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
        if ends:
            return
        assert process.returncode is None, (folder / "log").read_text()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60.0) == 0, (folder / "log").read_text()
    finally:
        with suppress(ProcessLookupError):  # Django's server is a child of the process that looks at the files
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@pytest.fixture
def folder(tmp_path: Path, history: History, telling: list[TellingReplica]) -> Path:
    try:
        packages("prefork")
    except Missing as missing:
        pytest.skip(str(missing))
    history.write("web-1")
    for replica in telling:
        replica.stored.put(instance("web-1"))
    (tmp_path / "application.py").write_text(APPLICATION)
    for name in ("queue", "answers"):
        (tmp_path / name).mkdir()
    return tmp_path


def fetch(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=60.0) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


async def test_gunicorn_workers_that_share_a_loaded_application_find_the_service(
    folder: Path, telling: list[TellingReplica]
) -> None:
    (folder / "served.py").write_text(GUNICORN)
    port = quiet_port()
    words = ("gunicorn", "--preload", "--workers", "3", "--bind", f"127.0.0.1:{port}", "served:app")
    async with program(*words, folder=folder, replicas=telling):
        answers: set[str] = set()

        async def three_answered() -> bool:
            answers.add(await asyncio.to_thread(fetch, f"http://127.0.0.1:{port}/"))
            return len({answer.split()[0] for answer in answers if answer}) == 3

        await eventually(three_answered, 120.0, f"three workers to answer: {(folder / 'log').read_text()}")
        assert {answer.partition(" ")[2] for answer in answers if answer} == {"web-1 web-1"}


async def test_celery_prefork_workers_find_the_service(folder: Path, telling: list[TellingReplica]) -> None:
    (folder / "tasks.py").write_text(CELERY.format(folder=folder))
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", SEND.format(folder=folder)],
        env={**os.environ, "PYTHONPATH": str(packages("prefork"))},
        timeout=100,
        check=True,
    )
    words = ("worker", "--pool", "prefork", "--concurrency", "2", "--prefetch-multiplier", "1")
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    async with program("celery", "-A", "tasks", *words, *alone, folder=folder, replicas=telling):

        def answers() -> list[str]:
            return [line for file in (folder / "answers").iterdir() for line in file.read_text().splitlines()]

        await eventually(lambda: len(answers()) == 12, 150.0, "twelve tasks to be done")
        assert {line.partition(" ")[2] for line in answers()} == {"web-1 web-1"}
        assert len({line.partition(" ")[0] for line in answers()}) == 2


async def test_django_serves_starts_anew_and_ends(folder: Path, telling: list[TellingReplica]) -> None:
    """The application is loaded by `ready()`: in the server, again at each change of a file, and in each command."""
    (folder / "pages.py").write_text(DJANGO)
    (folder / "manage.py").write_text(MANAGE)
    port, answers = quiet_port(), list[str]()

    async def another_answered() -> bool:
        answer = await asyncio.to_thread(fetch, f"http://127.0.0.1:{port}/")
        if answer and answer not in answers:
            answers.append(answer)
        (folder / "pages.py").touch()  # again and again: its first look at the files may come after a change
        await asyncio.sleep(0.5)
        return len(answers) == 2

    async with program("manage", "runserver", f"127.0.0.1:{port}", folder=folder, replicas=telling):
        await eventually(another_answered, 120.0, "Django to answer from two processes")
    assert {answer.partition(" ")[2] for answer in answers} == {"web-1 web-1"}
    async with program("manage", "check", folder=folder, replicas=telling, ends=True) as command:
        assert await asyncio.wait_for(command.wait(), 100.0) == 0, (folder / "log").read_text()
