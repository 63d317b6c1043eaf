"""The processes of a revision and what is run around them."""

from collections.abc import Iterable, Mapping

from hq.validation.durations import check_duration
from hq.validation.faults import Faults, entry
from hq.validation.files import check_variable
from hq.validation.ids import check_bytes, check_name
from hq.validation.resources import note_limit
from hqpb.v1.instance_pb2 import Container, LifecycleHook, ReadinessCheck

MAX_HOOK_NAME_BYTES = 253
NUL_RULE = "NUL is not allowed in arguments or environments: remove it"


def note_container(faults: Faults, container: Container, path: str) -> None:
    faults.note(check_name(container.name, f"{path}.name"))
    note_command(faults, container.command, f"{path}.command")
    note_environment(faults, container.environment, f"{path}.environment")
    note_limit(faults, container.limit, f"{path}.limit")
    faults.note(check_duration(container.stop_grace_period, f"{path}.stop_grace_period"))
    if container.HasField("post_start"):
        note_hook(faults, container.post_start, f"{path}.post_start")
    if container.HasField("pre_stop"):
        note_hook(faults, container.pre_stop, f"{path}.pre_stop")
    if container.HasField("readiness_check"):
        note_readiness_check(faults, container.readiness_check, f"{path}.readiness_check")


def note_readiness_check(faults: Faults, check: ReadinessCheck, path: str) -> None:
    faults.note(check_duration(check.initial_delay, f"{path}.initial_delay"))
    faults.note(check_duration(check.period, f"{path}.period"))
    faults.note(check_duration(check.timeout, f"{path}.timeout"))
    note_command(faults, check.exec.command, f"{path}.exec.command")
    if check.HasField("tcp"):
        faults.note(check_name(check.tcp.port, f"{path}.tcp.port"))
    if check.HasField("http"):
        faults.note(check_name(check.http.port, f"{path}.http.port"))


def note_hook(faults: Faults, hook: LifecycleHook, path: str) -> None:
    note_command(faults, hook.command, f"{path}.command")
    faults.note(check_duration(hook.timeout, f"{path}.timeout"))
    faults.note(check_bytes(hook.name, f"{path}.name", MAX_HOOK_NAME_BYTES))


def note_command(faults: Faults, command: Iterable[str], path: str) -> None:
    for index, argument in enumerate(command):
        if "\0" in argument:
            faults.add(f"{path}[{index}]", NUL_RULE)


def note_environment(faults: Faults, environment: Mapping[str, str], path: str) -> None:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name:
            faults.note(check_variable(name, entry(path, name)))
        elif "\0" in value:
            faults.add(entry(path, name), NUL_RULE)
