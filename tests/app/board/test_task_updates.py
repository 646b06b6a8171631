"""What a person changes of a task while an agent works on it: told by mail, and not again once that has arrived."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from covey.app.fleet import runs
from covey.app.people import mail_delivery
from covey.core.fleet.outcomes import Again, PutOff
from covey.core.fleet.prompts import prompt, resumed, told
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Trouble
from tests.worlds.boards import World


def talk(world: World, run: Run) -> Run:
    """Let a run be in a conversation that has heard its prompt."""
    brief = world.work(run).brief
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    world.do(lambda call: runs.heard(call, run, told(brief)))
    return run


def deliver(world: World, run: Run) -> None:
    """Let all mail reach a run."""
    ids = [each["id"] for each in world.ask("mail.inbox", session="ada")]
    world.do(lambda call: mail_delivery.delivered(call, "ada", run.id, ids, "transcript"))


def next_prompt(world: World, run: Run) -> str:
    """End a run as a failed try, and return what its conversation is told next."""
    world.end(run, Again("Nothing came of it."))
    again = world.begin()
    work = world.work(again)
    assert work.conversation == "talk-1" and work.brief.heard
    return resumed(work.brief)


def test_what_mail_told_while_it_worked_is_not_told_again(world: World) -> None:
    task = world.add(body="The first body")
    world.at_work()
    run = talk(world, world.begin())
    world.ask("task.edit", id=task, body="umber", note="ochre", done_when=["sienna"], scope=["cobalt/**"])
    (message,) = world.ask("mail.inbox", session="ada")
    assert all(each in message["text"] for each in ("umber", "ochre", "sienna", "cobalt/**"))
    deliver(world, run)
    text = next_prompt(world, run)
    assert not any(each in text for each in ("umber", "ochre", "sienna", "cobalt"))


def test_mail_that_did_not_arrive_stands_in_the_next_prompt_and_nothing_stands_there_twice(world: World) -> None:
    task = world.add(body="The first body")
    world.at_work()
    run = talk(world, world.begin())
    world.ask("task.edit", id=task, body="umber", note="ochre")
    text = next_prompt(world, run)
    assert (text.count("umber"), text.count("ochre")) == (1, 1)


def test_what_was_changed_back_after_mail_told_of_it_is_told(world: World) -> None:
    task = world.add(body="umber")
    world.at_work()
    run = talk(world, world.begin())
    world.ask("task.edit", id=task, body="ochre")
    deliver(world, run)
    world.end(run, Again("Nothing came of it."))
    world.ask("task.edit", id=task, body="umber")
    assert "umber" in resumed(world.work(world.begin()).brief)


def test_a_long_text_that_mail_cut_is_told_whole_at_the_next_start(world: World) -> None:
    task = world.add(body="short")
    world.at_work()
    run = talk(world, world.begin())
    long = "\n".join(f"umber {number}" for number in range(2000))
    world.ask("task.edit", id=task, body=long)
    deliver(world, run)
    assert long in next_prompt(world, run)


def test_a_conversation_that_never_heard_its_prompt_is_told_everything(world: World) -> None:
    world.add(body="umber")
    world.at_work()
    run = world.begin()
    world.do(lambda call: runs.note_conversation(call, run, "talk-1"))
    world.end(run, Again("Nothing came of it."))
    work = world.work(world.begin())
    assert (work.conversation, work.brief.heard) == ("talk-1", ())
    assert "umber" in prompt(work.brief)


def test_a_conversation_that_broke_has_heard_nothing(world: World) -> None:
    world.add(body="umber")
    world.at_work()
    run = talk(world, world.begin())
    world.end(run, Again("It broke.", fresh=True))
    assert world.work(world.begin()).brief.heard == ()


# Whatever happens, in whatever order

STEPS = ("edit", "note", "confirm", "deliver", "end", "put off", "restart daemon")


class Conversation:
    """A conversation on one task, and all that its model was told: prompts that it got, and mail."""

    def __init__(self, world: World) -> None:
        self.world, self.task, self.words = world, world.add(body="body-0."), 0
        self.told: list[str] = []
        self.notes: list[str] = []
        self.body = "body-0."
        world.at_work()
        self.begin()
        self.confirm()

    def begin(self) -> None:
        """Begin a run, and put its prompt together; nobody has read it yet."""
        if self.world.status(self.task) == "blocked":
            self.world.ask("task.edit", id=self.task, status="todo")
        self.run = self.world.begin()
        brief = self.world.work(self.run).brief
        self.prompt = resumed(brief) if brief.heard else prompt(brief)
        self.facts, self.confirmed = told(brief), False
        self.enclosed = [each["id"] for each in self.world.ask("mail.inbox", session="ada")]

    def confirm(self) -> None:
        """Let the model have its prompt, and the mail in it."""
        if self.confirmed:
            return
        self.confirmed = True
        self.told.append(self.prompt)
        self.world.do(lambda call: runs.note_conversation(call, self.run, "talk-1"))
        self.world.do(lambda call: runs.heard(call, self.run, self.facts))
        self.world.do(lambda call: mail_delivery.delivered(call, "ada", self.run.id, self.enclosed, "prompt"))

    def take(self, step: str) -> None:
        """Let something happen."""
        self.words += 1
        word = f"{step}-{self.words}."
        match step:
            case "edit":
                self.body = word
                self.world.ask("task.edit", id=self.task, body=word)
            case "note":
                self.notes.append(word)
                self.world.ask("task.edit", id=self.task, note=word)
            case "confirm":
                self.confirm()
            case "deliver" if self.confirmed:
                self.told += [each["text"] for each in self.world.ask("mail.inbox", session="ada")]
                deliver(self.world, self.run)
            case "end" | "put off":
                self.world.end(self.run, Again("No.") if step == "end" else PutOff("429", Trouble.LIMIT))
                self.begin()
            case "restart daemon":
                self.world.start(daemon=True)


@settings(max_examples=30, deadline=None)
@example(steps=["note", "deliver", *["end"] * 12])  # many runs of which none had its prompt
@given(steps=st.lists(st.sampled_from(STEPS), min_size=6, max_size=16))
def test_whatever_is_changed_when_a_conversation_hears_all_of_it_once(steps: list[str]) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        talk = Conversation(world)
        for step in steps:
            talk.take(step)
        world.end(talk.run, PutOff("429", Trouble.LIMIT))
        talk.begin()
        talk.confirm()
        text = "\n".join(talk.told)
        assert {note: text.count(note) for note in talk.notes} == dict.fromkeys(talk.notes, 1)
        assert text.count(talk.body) == 1
        world.store.close()
