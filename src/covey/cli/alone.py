"""Answer without a daemon: the store opened behind the writer's lock for as long as it takes."""

from __future__ import annotations

from urllib.parse import parse_qsl

from covey import config
from covey.app.app import VERBS, App, Principal
from covey.app.clock import SystemClock
from covey.app.verbs import fingerprint, read_body, read_query
from covey.cli.client import Answer, Question
from covey.git.project import Project
from covey.runners.process import ProcessRunner
from covey.store.lock import WriterLock
from covey.store.sqlite import SqliteStore

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from covey.loops.desk import Desk
    from covey.store.tx import Tx


class Alone:
    """The store of a project, ours alone while it is open."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = WriterLock(project.lock)
        self._store: SqliteStore | None = None
        self._app: App | None = None

    def try_open(self) -> bool:
        """Take the lock and open the store, unless somebody else has it."""
        if not self._lock.try_take():
            return False
        try:
            self._project.daemon_file.unlink(missing_ok=True)  # what a killed daemon said: none can live beside us
            self._store = SqliteStore(self._project.database, project=self._project.name)
            settings = config.load(self._project.root)
            secret = self._project.token().encode()
            runner = ProcessRunner(self._project.state / "runs")
            self._app = App(
                self._store, settings, SystemClock(), self._project.name, daemon=False, secret=secret, runner=runner
            )
            self._app.house.runs = self._project.state / "runs"
            self._app.house.repository = self._project
        except BaseException:
            self.close()
            raise
        return True

    def ask(self, question: Question) -> Answer:
        """Answer one request, exactly as the daemon would."""
        assert self._app is not None
        verb = VERBS[question.verb]
        if verb.changes:
            asked = read_body(verb, question.body)
        else:
            asked = read_query(verb, parse_qsl(question.query, keep_blank_values=True))
        request = fingerprint(question.method, question.target(quoted=False), question.body)
        answer = self._app.ask(verb, Principal(), asked, question.params, key=question.key, request=request)
        return Answer(answer.status, answer.body, answer.total)

    def tell(self, what: str) -> None:
        """Tell those who wait for the lock what keeps it, if that takes long."""
        self._lock.tell(what)

    def desk(self) -> Desk:
        """Return what the loops need to do here what a daemon would do; whoever asked closes it."""
        from covey.git.worktrees import Worktrees, default_folder
        from covey.loops.desk import Desk

        app, store, project = self._app, self._store, self._project
        assert app is not None and store is not None

        async def read(job: Callable[[Tx], Any]) -> Any:
            return store.read(job)

        async def write(job: Callable[[Tx], Any]) -> Any:
            return store.run([job])[0].result()

        runner = app.house.runner
        assert runner is not None
        worktrees = Worktrees(project, default_folder(project, app.house.config.sessions.worktrees))
        return Desk(app, project, runner, worktrees, "", read, write)

    def close(self) -> None:
        """Close the store and give the lock back; closing twice is fine."""
        store, self._store, self._app = self._store, None, None
        try:
            if store is not None:
                store.close(tidy=True)  # the next command would have to read the whole write-ahead log
        finally:
            self._lock.give()
