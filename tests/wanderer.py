"""Random walks through the core: whatever operations may come, in whatever order, from however many threads."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from uuid import UUID

from base import db, ids
from catalog.models import KillSwitch, Scope
from jobs.models import Call, Hold, Job, Starter
from jobs.operations import asking_again, cancel, editing, holds, intake, nodes, switches, turns, work
from jobs.queries import due
from jobs.rules.orders import End, Order
from jobs.rules.states import JOB_FINAL, HoldKind
from jobs.rules.turns import TurnAnswer, TurnFailed, Wanted
from jobs.rules.why import Why
from tenants.rules.who import SYSTEM
from tests.builders import FUNCTIONS, World, a_policy, a_rule, an_outcome, swept

REFUSALS = (cancel.AlreadyOver, asking_again.CannotAsk, holds.BadAnswer, intake.CannotStart, switches.BadSwitch)
ENDS = (End.ANSWERED,) * 4 + (End.BUSY, End.NOT_MADE, End.TIMED_OUT, End.BROKEN, End.UNREADABLE, End.LOST, End.STOPPED)
EFFECTS = ("allow", "ask", "refuse")


class Wanderer:
    """One walk over the jobs of a tenant; it remembers what it has claimed, as a node does."""

    def __init__(self, world: World, seed: int, move_clock: Callable[[timedelta], None]) -> None:
        self.world = world
        self.dice = Random(seed)
        self.orders: list[Order] = []
        self._node = world.node
        self._move_clock = move_clock
        self._steps: dict[Callable[[], None], int] = {
            self.start: 4,
            self.turn: 14,
            self.claim: 20,
            self.settle: 18,
            self.settle_twice: 2,
            self.answer: 10,
            self.extend: 1,
            self.ask_again: 2,
            self.cancel: 1,
            self.will_not_start: 1,
            self.switch: 1,
            self.policy: 1,
            self.sweep: 2,
            self.hours_pass: 1,
        }

    def step(self) -> None:
        """One operation, chosen by the dice. One that is refused in words is a step too."""
        (act,) = self.dice.choices(list(self._steps), list(self._steps.values()))
        try:
            act()
        except REFUSALS:
            return

    def finish(self) -> None:
        """Let everything come to its end: nothing new, every attempt settled, every job cancelled."""
        with db.read(self.world.tenant):
            on = list(KillSwitch.objects.filter(off_at__isnull=True).values_list("pk", flat=True))
            live = list(Job.objects.exclude(state__in=JOB_FINAL).values_list("pk", flat=True))
        for switch in on:
            switches.turn_off(tenant=self.world.tenant, switch_id=switch, by=SYSTEM)
        while self.orders:
            self.settle()
        for job in live:
            try:
                cancel.cancel_job(tenant=self.world.tenant, job_id=job, by=SYSTEM)
            except cancel.AlreadyOver:
                continue

    # --- the steps ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        starter = self.dice.choice(list(Starter))
        intake.start_job(
            tenant=self.world.tenant, agent="clerk", given={}, starter=starter, person=self.world.person, title=""
        )

    def turn(self) -> None:
        mine = [job for tenant, job in due.work(turns=20).turns if tenant == self.world.tenant]
        if not mine:
            self.start()
            return
        order = turns.start(tenant=self.world.tenant, job_id=self.dice.choice(mine), node_id=self._node)
        if order is None or self.dice.random() < 0.05:  # as if this node died over it
            return
        wanted = [
            Wanted(f"shop__{self.dice.choice(FUNCTIONS).name}", {"order": n}) for n in range(self.dice.randint(0, 4))
        ]
        outcome = TurnAnswer(say="…", wanted=tuple(wanted)) if self.dice.random() < 0.95 else TurnFailed("no model")
        turns.settle(tenant=self.world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=outcome)

    def claim(self) -> None:
        call = self._one(Call, due_at__isnull=False)
        if call is None:
            return
        order = work.start(tenant=self.world.tenant, call_id=call, node_id=self._node, attempt_id=ids.new())
        if order is not None:
            self.orders.append(order)
        else:
            self._come_back()

    def settle(self) -> None:
        if self.orders:
            order = self.orders.pop(self.dice.randrange(len(self.orders)))
            self._settle(order)

    def settle_twice(self) -> None:
        if self.orders:
            order = self.orders.pop()
            self._settle(order)
            self._settle(order)

    def _settle(self, order: Order) -> None:
        end = self.dice.choice(ENDS)
        wait = self.dice.choice([None, 0.0, 5.0, 90.0]) if end is End.BUSY else None
        outcome = an_outcome(
            end, went_out=self.dice.random() < 0.8, is_error=self.dice.random() < 0.2, retry_after=wait
        )
        work.settle(tenant=self.world.tenant, attempt_id=order.attempt_id, outcome=outcome, jitter=self.dice.random())

    def answer(self) -> None:
        hold = self._one(Hold, closed_at__isnull=True)
        if hold is None:
            return
        with db.write(self.world.tenant):
            kind = HoldKind(Hold.objects.get(pk=hold).kind)
            answer = self.dice.choice([*holds.ANSWERS[kind], *holds.ANSWERS[kind][:2]])
            if answer is holds.Answer.EDIT:
                other = {"order": self.dice.randint(10, 99)}
                alone = self.dice.random() < 0.7
                editing.edit(hold_id=hold, arguments=other, person=self.world.person, alone=alone)
            else:
                holds.answer(hold_id=hold, answer=answer, person=self.world.person, note="because")

    def extend(self) -> None:
        hold = self._one(Hold, closed_at__isnull=True)
        if hold is not None:
            with db.write(self.world.tenant):
                holds.extend(hold_id=hold)

    def ask_again(self) -> None:
        call = self._one(Call, reason=Why.EXPIRED)
        if call is not None:
            with db.write(self.world.tenant):
                asking_again.ask_again(call_id=call, person=self.world.person)

    def cancel(self) -> None:
        job = self._one(Job)
        if job is not None:
            cancel.cancel_job(tenant=self.world.tenant, job_id=job, by=SYSTEM)

    def will_not_start(self) -> None:
        call = self._one(Call, due_at__isnull=False)
        if call is not None:
            work.opening_failed(tenant=self.world.tenant, call_id=call, why="exit 1", jitter=self.dice.random())

    def switch(self) -> None:
        scope, target = self.dice.choice(
            [(Scope.TOOL, "shop"), (Scope.FUNCTION, "shop.note"), (Scope.FUNCTION, "shop.look"), (Scope.AGENT, "clerk")]
        )
        on = switches.turn_on(tenant=self.world.tenant, scope=scope, target=target, reason="a drill", by=SYSTEM)
        for _ in range(3):
            self.step()
        switches.turn_off(tenant=self.world.tenant, switch_id=on, by=SYSTEM)

    def policy(self) -> None:
        function = self.dice.choice(FUNCTIONS).name
        a_policy(self.world, a_rule(f"rule-{function}", self.dice.choice(EFFECTS), function=function))

    def sweep(self) -> None:
        self._move_clock(timedelta(seconds=self.dice.choice([1, 4, 12])))
        if self.dice.random() < 0.7:
            self._come_back()
        swept()

    def hours_pass(self) -> None:
        self._move_clock(timedelta(seconds=self.dice.choice([70, 70, 700, 90_000])))
        self._come_back()

    def _come_back(self) -> None:
        """The node says that it lives, as a new one when it was declared lost."""
        try:
            nodes.beat(node_id=self._node, servers=[])
        except nodes.NodeGone:
            self._node = nodes.register(name="again", host="here", pid=1, slots=32)

    def _one(self, model: type[Call] | type[Hold] | type[Job] | type[KillSwitch], **which: object) -> UUID | None:
        with db.read(self.world.tenant):
            found = list(model.objects.filter(**which).order_by("pk").values_list("pk", flat=True))
        return self.dice.choice(found) if found else None
