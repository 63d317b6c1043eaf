"""One process of the controller under test: `python -m tests.control.printer_process`. Orders come by a Unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path

import click

from control import ControlConfig, Controller
from serving.clock import SystemClock
from serving.errors import ServiceError
from serving.process import run, when_told_to_stop
from serving.telemetry.logs import set_up_logs
from store.etcd import EtcdConfig, EtcdStore
from tests.control.printers import Order, Printer
from tests.support.controllers import running

ORDER_S = 5.0


class FileWorld:
    """A file per book, a line per id: what is written is there at once for all processes, guarded by nothing."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def print(self, book: str, place: int, order_id: str, word: int) -> None:
        line = f"{json.dumps([book, place, order_id, word, time.monotonic()])}\n"
        file = os.open(self._directory / book, os.O_APPEND | os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    async def count(self, book: str) -> int:
        path = self._directory / book
        return len(path.read_bytes().splitlines()) if path.exists() else 0


@click.command()
@click.option("--etcd", required=True)
@click.option("--prefix", required=True)
@click.option("--process", required=True)
@click.option("--term", type=float, required=True)
@click.option("--directory", type=click.Path(path_type=Path), required=True)
def cli(etcd: str, prefix: str, process: str, term: float, directory: Path) -> None:
    set_up_logs("info", "text")
    run(lambda: serve(etcd, ControlConfig(prefix, process, term), directory))


async def serve(etcd: str, config: ControlConfig, directory: Path) -> None:
    store = EtcdStore(EtcdConfig((etcd,), read_timeout_s=1.0))
    controller = Controller(config, store, SystemClock(), random.SystemRandom())
    printer = Printer(controller, FileWorld(directory / "world"))
    stopped = asyncio.Event()
    when_told_to_stop(stopped.set)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(await ordered(printer, **json.loads(line))).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, directory / f"{config.process}.sock")
    async with server, running(controller):
        await stopped.wait()
    await store.close()


async def ordered(printer: Printer, order_id: str, book: str) -> str:
    """Empty: it took effect."""
    try:
        await printer.orders.submit(book, Order(value=order_id), request_id=order_id, timeout_s=ORDER_S)
    except ServiceError as error:
        return f"{error.reason}: {error}"
    return ""


if __name__ == "__main__":
    cli()
