"""After the store was restored or replaced: work that it has forgotten may still be in progress.

CMSs hold tasks of operations requested after the backup. Until people have reviewed that, fuses are tripped, no
task is collected as garbage, and the hosts of unknown tasks count as busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from control.errors import Refused
from walle.fuses.fuse import ALL_PROJECTS, AUTOMATION, GLOBAL, Automation, Moment, switch_off
from walle.work.book import FUSE, RESTORED, Notice, WalleTransaction, World
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, Fuse, Project, Restored, UnknownTask
from wallepb.v1.service_pb2 import ReleaseTasksRequest


def notice(book: WalleTransaction, project: str, epoch: str, now: Moment, evidence: str = "") -> list[Notice]:
    """Trip the fuse of a project and the global one: once per epoch, and again for each new piece of evidence.

    Evidence is what a CMS of the project says, perhaps in error: then only this project's fuse trips.
    """
    notices = []
    for owner in (project,) if evidence else (project, GLOBAL):
        restored = book.get(RESTORED, owner)
        if restored is not None and restored.epoch == epoch and not evidence:
            continue
        fuse, why = book.get(FUSE, owner) or Fuse(id=owner), evidence or _restore_message(epoch)
        for automation in Automation:
            fuse = switch_off(fuse, automation, AUTOMATION, why, now)
        book.put(FUSE, owner, fuse)
        book.put(RESTORED, owner, Restored(project=owner, epoch=epoch, evidence=evidence))
        told, whose = ("", ALL_PROJECTS) if owner == GLOBAL else (owner, owner)
        text = f"all automation of {whose} is off: {why}; check it before you switch it on"
        notices.append(Notice(SEVERITY_CRITICAL, told, text))
    return notices


def _restore_message(epoch: str) -> str:
    return f"the store was restored or replaced (epoch {epoch})"


def is_looked_at(restored: Restored | None, epoch: str) -> bool:
    """Whether a project has nothing left to review since the store was restored, or if it never was."""
    if restored is None or restored.epoch != epoch:
        return not epoch
    return restored.looked


def take_listing(book: WalleTransaction, project: str, epoch: str, cms: str, unknown: Sequence[UnknownTask]) -> None:
    """Store which of the tasks that a CMS has listed are ours, and belong to nothing."""
    restored = book.get(RESTORED, project)
    if restored is None or restored.epoch != epoch or restored.looked:
        return
    kept = [task for task in restored.task if task.cms != cms]
    del restored.task[:]
    restored.task.extend([*kept, *unknown])
    if cms not in restored.listed:
        restored.listed.append(cms)
    book.put(RESTORED, project, restored)


def release_tasks(book: WalleTransaction, order: ReleaseTasksRequest, by: str) -> None:
    """Note that an operator reviewed the tasks: they may be collected, and their hosts touched."""
    restored = book.get(RESTORED, order.project)
    if restored is None or restored.looked:
        raise Refused(f"project {order.project}: no tasks wait to be looked at")
    restored.looked, restored.by, restored.reason = True, by, order.reason
    for task in restored.task:  # their ids are kept, so that reviewed tasks do not count as new evidence
        del task.host[:]
    book.put(RESTORED, order.project, restored)


def busy_hosts(restored: Restored | None) -> set[str]:
    """Hosts of unknown tasks."""
    return {host for task in (restored.task if restored else ()) for host in task.host}


def why_busy(restored: Restored | None, host: str) -> str:
    """The unknown task that holds this host, and what to do; empty: none does."""
    for task in restored.task if restored else ():
        if host in task.host:
            since = f"task {task.id} of {task.cms} has held it since before the store was restored"
            return f"{since}: {_look(restored)}"
    return ""


def _look(restored: Restored | None) -> str:
    project = restored.project if restored else ""
    return f"check whether its work is over, then `walle projects release-tasks {project} -m WHY`"


def why_untouched(restored: Restored | None, host: Host, project: Project, world: World) -> str:
    """Why automation leaves a host alone since the store was restored; empty: it does not."""
    epoch = world.epoch()
    if is_looked_at(restored, epoch):
        return ""
    listed = restored.listed if restored is not None and restored.epoch == epoch else ()
    waited = sorted({one.url for one in project.cms} - set(listed))
    if waited:
        return f"the store was restored, and {waited[0]} has not listed its tasks since: see whether that CMS answers"
    return why_busy(restored, host.name)


def why_unclear(
    names: Iterable[str],
    hosts: Mapping[str, Host],
    projects: Mapping[str, Project],
    known: Mapping[str, Restored],
    world: World,
) -> str:
    """Why planned work may not begin on these hosts since the store was restored; empty: it may.

    Work that it has forgotten may be in progress there, with or without leave.
    """
    for host in [hosts[name] for name in names if name in hosts]:
        project = projects.get(host.project) or Project(id=host.project)
        why = why_untouched(known.get(project.id), host, project, world)
        if why:
            return f"host {host.name}: {why}"
    return ""


def review_items(restored: Restored | None) -> list[str]:
    """Return the items that people have to review."""
    if restored is None or restored.looked:
        return []
    name = restored.project
    shown = [f"project {name}: {restored.evidence}"] if restored.evidence else []
    return shown + [
        f"project {name}: task {task.id} at {task.cms} for {', '.join(task.host)} is unknown since the restore: "
        f"{_look(restored)}"
        for task in restored.task
    ]
