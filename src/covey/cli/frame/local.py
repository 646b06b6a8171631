"""Answer without a daemon: the store opened ahead, and the writer's lock held for the transaction alone."""

from __future__ import annotations

from collections.abc import Callable

from covey import config
from covey.app.app import App, Request
from covey.app.clock import SystemClock
from covey.app.context import Context, Principal
from covey.app.fleet.heartbeats import Pulses
from covey.app.verbs import VERBS, decode, fingerprint, read_query
from covey.cli.frame.client import Answer, Question
from covey.errors import CoveyError
from covey.git.project import Project
from covey.runners.process import ProcessRunner
from covey.store.engine.lock import WriterLock
from covey.store.engine.sqlite import SqliteStore

TYPE_CHECKING = False  # As typing.TYPE_CHECKING, without the milliseconds that importing typing takes.
if TYPE_CHECKING:
    from covey.loops.runtime import Runtime


class Alone:
    """The store of a project, ours alone while we hold its lock; between questions it stays open, and others write."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lock = WriterLock(project.lock)
        self._watcher: config.Watcher | None = None
        self._settings = config.Config()
        self._clock = SystemClock()
        self._runner = ProcessRunner(project.runs)
        self._secret = b""
        self._store: SqliteStore | None = None
        self._app: App | None = None

    @property
    def is_ours(self) -> bool:
        """Say whether we hold the lock."""
        return self._app is not None

    def take(self, patience: float, is_answered: Callable[[], bool]) -> bool:
        """Take the lock in turn, and the store behind it; stop waiting as soon as somebody else has answered.

        All that takes time is done before: others wait as long as we hold the lock.
        """
        try:
            store: SqliteStore | None = self._prepare()
        except CoveyError:
            store = None  # a daemon that answers does not mind; else it is said below
        if not self._lock.take(patience, is_answered):
            return False
        try:
            self._project.daemon_file.unlink(missing_ok=True)  # what a killed daemon said: none can live beside us
            store = store or self._prepare()
            store.take_up()
            context = Context(
                self._settings,
                Pulses(self._clock, store.place),  # the signs of life as they are now
                self._project.name,
                secret=self._secret,
                runner=self._runner,
                runs=self._project.runs,
                repository=self._project,
            )
            self._app = App(store, context)
        except BaseException:
            self.close()
            raise
        return True

    def _prepare(self) -> SqliteStore:
        """Read the settings and the token, and open the store, if that was not done before."""
        if self._watcher is None:
            self._watcher = config.Watcher(self._project.root)
            try:
                self._settings = config.load(self._project.root)
            except BaseException:
                self._watcher = None
                raise
        self._settings = self._watcher.changed() or self._settings
        self._secret = self._project.token().encode()
        if self._store is None:
            self._store = SqliteStore(self._project.database, project=self._project.name, ahead=True)
        return self._store

    def ask(self, question: Question) -> Answer:
        """Answer one request, exactly as the daemon would."""
        assert self._app is not None
        verb, sent = VERBS[question.verb], b""
        if verb.changes:
            asked = decode(verb.decoder, question.body or b"{}")
            sent = fingerprint(verb.method, verb.path.format(**question.params), question.body)
        else:
            from urllib.parse import parse_qsl  # takes as long to import as three claims

            asked = read_query(verb, parse_qsl(question.query, keep_blank_values=True))
        answer = self._app.ask(Request(verb, Principal(), asked, question.params, question.key, sent))
        return Answer(answer.status, answer.body, answer.total)

    def tell(self, what: str) -> None:
        """Tell those who wait for the lock what keeps it, if that takes long."""
        self._lock.tell(what)

    def runtime(self) -> Runtime:
        """Return what the loops need to do here what a daemon would do; whoever asked closes it."""
        from covey.git.worktrees.worktrees import Worktrees, default_folder
        from covey.loops.runtime import Runtime
        from covey.store.bus import Direct

        app, store, project = self._app, self._store, self._project
        assert app is not None and store is not None
        runner = app.context.runner
        assert runner is not None
        worktrees = Worktrees(project, default_folder(project, app.context.config.sessions.worktrees))
        return Runtime(app, project, runner, worktrees, "", Direct(store))

    def give(self) -> None:
        """Give the lock back, and keep the store open for the next question; giving it twice is fine."""
        self._app = None
        self._lock.give()

    def close(self) -> None:
        """Close the store and give the lock back; closing twice is fine."""
        store, self._store, self._app = self._store, None, None
        try:
            if store is not None:
                store.close()
        finally:
            self._lock.give()
