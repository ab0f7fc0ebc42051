"""The stories themselves, without a verdict: the tests tell them, and tell them again with mistakes planted."""

import signal
from contextlib import contextmanager, nullcontext

import redis

from tests.support.stories.lab import Fuse
from tests.support.stories.proxy import before_postgres, before_redis
from tests.support.stories.sending import depot, github, stripe

MOST = 400


def cut_everywhere(lab, day, only=None):
    """Tell a day again and again, cut at the 1st, 2nd, … failpoint, or that of one name, until a day meets none.

    Gives, as long as the day goes on, the failpoint and what the checker said to that day.
    """
    for k in range(1, MOST):
        lab.fuse = Fuse(k, lab.directory / "failpoints", only)
        day(lab, f"{k}")
        lab.recover()
        met = lab.fuse.met
        violations = lab.violations()
        if lab.fuse.is_blown:
            yield only or met[k - 1], violations
        else:
            yield None, violations
            return
        lab.forget()
    raise AssertionError(f"more than {MOST} failpoints in a day")


def cut_at_each(lab, days, *, among=""):
    """Tell days once uncut, and once cut at each failpoint; give the failpoint and what the checker said.

    The failpoint is None where nothing was cut: a day may go otherwise the second time. A failpoint that comes again
    is not cut again. `among`: beginnings of the names of failpoints.
    """
    known = set()
    for day in days:
        met, violations = told(lab, day, Fuse(MOST, lab.directory / "failpoints"))
        yield None, violations
        for point in met:
            if point not in known and point.startswith(among):
                known.add(point)
                fuse = Fuse(1, lab.directory / "failpoints", point)
                _, violations = told(lab, day, fuse)
                yield point if fuse.is_blown else None, violations


def told(lab, day, fuse):
    """Tell a day; give the failpoints that were met and what the checker says, and begin a new history."""
    lab.fuse = fuse
    day(lab, "day")
    lab.recover()
    met, violations = fuse.met, lab.violations()
    lab.forget()
    return met, violations


def points_of(lab, day):
    """Tell a day that nothing cuts; give the failpoints it goes through, as often as it does."""
    return told(lab, day, Fuse(MOST, lab.directory / "failpoints"))[0]


def cut_at(lab, point, day):
    """Tell a day cut where it first meets this failpoint; the checker has the last word."""
    lab.fuse = Fuse(1, lab.directory / "failpoints", point)
    day(lab, "cut")
    lab.recover()
    assert lab.fuse.is_blown


@contextmanager
def unarmed(lab):
    """Let nobody meet the fuse in the block."""
    fuse, lab.fuse = lab.fuse, None
    try:
        yield
    finally:
        lab.fuse = fuse


def sweep_after(lab):
    """Sweep after a worker, under the fuse if it has not blown yet."""
    with unarmed(lab) if lab.fuse.is_blown else nullcontext():
        lab.sweep()


def day_of_deliveries(lab, name):
    """A first copy, its retry, a twin at the same moment, a tampered and a forged one."""
    paid, twin = stripe(f"evt_{name}_paid"), stripe(f"evt_{name}_twin", "invoice.sent")
    lab.insist(paid)
    lab.insist(paid.again())
    lab.until(lambda: "tally.written" in lab.fuse.met, what="the count")  # now and not anywhere
    lab.insist(paid.tampered())
    lab.deliver(paid.forged())
    lab.insist_at_once(twin, copies=2)


def day_of_batches(lab, name):
    """A batch, and a repeat: the same body under another id."""
    lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(3))))
    lab.insist(github(f"push-{name}", ref=f"main-{name}"))
    lab.insist(github(f"push-{name}-again", ref=f"main-{name}"))


def day_of_work(lab, name):
    """Two handlers on an event, one of which fails once; a batch; a giving up; a sweep and two workers."""
    with unarmed(lab):
        lab.insist(stripe(f"evt_{name}_paid", fail=1, by="mail"))
        lab.insist(stripe(f"evt_{name}_never", "invoice.sent", give_up=True))
        lab.insist(depot(f"parcel_{name}_1", f"parcel_{name}_2"))
    lab.sweep()
    lab.work()
    sweep_after(lab)


def day_of_batches_of_handlers(lab, name):
    """Events that a handler takes together; one of them fails, so that both halves are tried by themselves."""
    with unarmed(lab):
        lab.insist(depot(*(f"crate_{name}_{n}" for n in range(2)), kind="crate.sent"))
        lab.insist(depot(f"crate_{name}_bad", kind="crate.sent", fail=1))
    lab.work()
    sweep_after(lab)


def day_of_many_at_once(lab, name):
    """A worker that runs three at once: ordinary runs, failing and final ones, a limit, long work and a step."""
    with unarmed(lab):
        lab.insist(stripe(f"evt_{name}_paid", fail=1, by="mail"))
        lab.insist(stripe(f"evt_{name}_never", "invoice.sent", give_up=True))
        for kind in ("truck.left", "scale.read", "order.placed"):
            lab.insist(depot(f"{kind}_{name}", kind=kind, hold=0.01))
    lab.sweep()
    lab.work_many()
    sweep_after(lab)


def day_of_batches_beside_many(lab, name):
    """The same worker with events that are taken together, one of which fails once it is alone, beside others."""
    with unarmed(lab):
        lab.insist(depot(*(f"crate_{name}_{n}" for n in range(2)), kind="crate.sent"))
        lab.insist(depot(f"crate_{name}_bad", kind="crate.sent", fail=1))
        lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(2))))
    lab.work_many()
    sweep_after(lab)


def day_in_a_hurry(lab, name):
    """A worker whose budget is over at once: it lets go of what it has not started, and rings for it."""
    with unarmed(lab):
        lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(2))))
    lab.work(tight=True)


def reply_of_the_window_lost(lab):
    """Redis has claimed the event, and its answer never came."""
    with before_redis(lab.environ["REDIS_URL"], lab.directory) as (proxy, url):
        lab.use_receiver(environ={"REDIS_URL": url})
        lab.insist(stripe("evt_heard"))
        proxy.swallow(b"$0\r\n\r\n")
        lab.insist(stripe("evt_unheard"))
        assert proxy.swallowed.is_set()
    lab.recover()


def reply_to_the_insert_lost(lab):
    """The ledger has committed the event, and the receiver saw an error."""
    with before_postgres(lab.environ["DATABASE_URL"], lab.directory) as (proxy, url):
        lab.use_receiver(environ={"DATABASE_URL": url})
        lab.insist(stripe("evt_heard"))
        proxy.swallow(b"evt_unheard")
        lab.insist(stripe("evt_unheard"))
        assert proxy.swallowed.is_set()
    lab.history.faults += (
        1  # the receiver asked again by itself, and took the first for a delivery of its own
    )
    lab.recover()


def reply_to_the_claim_lost(lab):
    """The claim is committed, and the worker does not know of it."""
    lab.insist(stripe("evt_claimed"))
    with before_postgres(lab.environ["DATABASE_URL"], lab.directory) as (proxy, url):
        proxy.swallow(b"COMMIT\0", after=b"evt_claimed")
        lab.work(environ={"DATABASE_URL": url})
        assert proxy.swallowed.is_set()
    lab.history.faults += 1
    lab.recover()


def reply_to_the_finish_lost(lab):
    """The handler's effect and its `done` are committed, and the worker saw an error."""
    lab.insist(stripe("evt_finished", "invoice.sent", wait=True))
    with before_postgres(lab.environ["DATABASE_URL"], lab.directory) as (proxy, url):
        worker = lab.start_worker(environ={"DATABASE_URL": url})
        lab.until(lab.entries, 1, "the handler")
        proxy.swallow(b"COMMIT\0")
        for attempt in (1, 2):
            lab.let_go("evt_finished", attempt)
        lab.ended(worker)
        assert proxy.swallowed.is_set()
    lab.recover()


def stale_worker_goes_on(lab, entered=0, **story):
    """A worker stays in its handler beyond its lease; another takes over; then the first one ends, then the second.

    `entered`: how often workers have died of the event before.
    """
    lab.insist(stripe("evt_slow", "invoice.sent", wait=True, **story))
    first = lab.start_worker()
    lab.until(lab.entries, entered + 1, "the first attempt")
    lab.expire_leases()
    lab.sweep()
    second = lab.start_worker()
    lab.until(lab.entries, entered + 2, "the second attempt")
    for entry in (1, 3, 4):
        lab.let_go("evt_slow", entered + entry)
    lab.ended(first)
    lab.sweep()
    lab.work()
    lab.let_go("evt_slow", entered + 2)
    lab.ended(second)
    lab.recover()


def stale_worker_of_a_suspect_goes_on(lab, **story):
    """The same with an event that is run alone, since a worker has died of it before."""
    slow = stripe("evt_slow", "invoice.sent", wait=True, kill=1, **story)
    lab.insist(slow)
    lab.let_go("evt_slow", 1)
    lab.work()
    lab.pass_time()
    lab.sweep()
    stale_worker_goes_on(lab, entered=1, kill=1, **story)


def stale_worker_fails(lab):
    """The same, but the handler of the first worker fails in the end."""
    stale_worker_of_a_suspect_goes_on(lab, fail=1)


def handler_that_commits_itself(lab):
    """A handler ends its transaction behind our back, and then fails, or returns."""
    lab.insist(stripe("evt_fails", "invoice.sent", commit=True, fail=2))
    lab.insist(stripe("evt_returns", "invoice.sent", commit=True))
    lab.insist(stripe("evt_other", "invoice.sent"))
    lab.recover()


def handler_that_commits_itself_and_dies(lab):
    """A handler ends its transaction behind our back, and its process dies; nobody makes another attempt."""
    lab.insist(stripe("evt_dies", "invoice.sent", commit=True, die=True))
    lab.insist(stripe("evt_other", "invoice.sent"))
    lab.recover()


def handler_that_rolls_back(lab):
    """A handler's session rolls the transaction back, and fails; the next attempt is good, in Django there is none."""
    lab.insist(stripe("evt_rolled_back", "invoice.sent", roll_back=1))
    lab.insist(stripe("evt_other", "invoice.sent"))
    lab.recover()


def poison_kills_its_workers(lab):
    """One event takes its worker with it at every attempt, in the midst of others."""
    lab.insist(depot("parcel_before"))
    lab.insist(depot("parcel_poison", kill=True))
    lab.insist(depot(*(f"parcel_{n}" for n in range(5))))
    lab.recover()


def copies_at_once(lab):
    """Fifty copies of one event reach two receivers at the same moment."""
    receivers = [lab.start_receiver() for _ in range(2)]
    for receiver in receivers:
        lab.insist(stripe(f"evt_{receiver.pid}"), receiver)
    lab.insist_at_once(stripe("evt_popular"), copies=50, receivers=receivers)
    lab.recover()


def other_body_under_one_id(lab):
    """A body comes under a known id, late or at the same moment, and again."""
    first = stripe("evt_claimed_twice")
    lab.insist(first)
    for message in (first.tampered(), first.tampered(2_000_000), first.tampered().again(), first.again()):
        lab.insist(message)
    lab.recover()


def clocks_disagree(lab):
    """Workers whose clocks are hours apart share one ledger; nothing else is wrong with them."""
    lab.insist(stripe("evt_slow", "invoice.sent", wait=True))
    right = lab.start_worker()
    lab.until(lab.entries, 1, "the first attempt")
    lab.let_go("evt_slow", 2)
    lab.ring()
    lab.work(skew=7200)
    lab.let_go("evt_slow", 1)
    lab.ended(right)
    lab.insist(stripe("evt_failing", "invoice.sent", fail=1))
    for skew in (-7200, 7200):
        lab.sweep()
        lab.work(skew=skew)
    lab.recover()


def hurried_worker(lab):
    """A worker whose budget is over after each attempt is alone with its bell: no sweep comes to help."""
    lab.insist(depot(*(f"parcel_{n}" for n in range(5))))
    lab.until(lab.rings, 1, "the ring")  # it goes out behind the answer
    lab.work(tight=True)


def attempt_takes_longer_than_its_lease(lab):
    """A healthy worker's handler takes longer than a lease; others come by meanwhile."""
    lab.insist(depot("parcel_long", wait=True))
    worker = lab.start_worker(environ={"STORY_BEAT": "0.02"})
    lab.until(lab.entries, 1, "the attempt")
    for _ in range(2):
        lab.pass_time("20 seconds")
        lab.wait_for_renewal()
    lab.let_go("parcel_long", 2)
    lab.sweep()
    lab.work()
    lab.let_go("parcel_long", 1)
    lab.ended(worker)
    lab.recover()


def worker_dies_in_the_midst_of_its_claim(lab):
    """Some of what it has claimed is done, some not begun; whoever takes over can tell what it died of."""
    lab.insist(depot(*(f"parcel_{n}" for n in range(2))))
    lab.insist(depot("parcel_bad", kill=1))
    lab.insist(depot(*(f"parcel_{n}" for n in range(2, 5))))
    lab.drop_rings()
    lab.ring()
    lab.work()
    lab.pass_time()
    lab.take_over()
    lab.recover()


def day_after_a_death(lab, name):
    """Another worker has died in the midst of what it had claimed; the next one takes that over."""
    with unarmed(lab):
        lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(2))))
        lab.insist(depot(f"parcel_{name}_bad", kill=1))
        lab.insist(depot(f"parcel_{name}_last"))
        lab.work()
        lab.pass_time()
    lab.sweep()
    lab.work()
    sweep_after(lab)


def worker_is_asked_to_stop(lab):
    """SIGTERM comes while a handler is at work and other events are claimed."""
    lab.insist(stripe("evt_slow", "invoice.sent", wait=True))
    lab.insist(depot(*(f"parcel_{n}" for n in range(5))))
    lab.drop_rings()
    worker = lab.start_worker("work_on")
    lab.until(lab.entries, 1, "the handler")
    worker.kill(signal.SIGTERM)
    lab.let_go("evt_slow", 1)
    lab.ended(worker)


def two_workers_at_once(lab):
    """Two workers are told of the same events at the same moment."""
    lab.insist(stripe("evt_slow", "invoice.sent", wait=True))
    first = lab.start_worker()
    lab.until(lab.entries, 1, "the handler")
    lab.insist(depot(*(f"parcel_{n}" for n in range(20))))
    lab.ring()
    workers = [lab.start_worker() for _ in range(2)]
    lab.let_go("evt_slow", 1)
    for worker in [first, *workers]:
        lab.ended(worker)
    lab.recover()


def retention_then_a_late_retry(lab):
    """The body is long gone and Redis remembers nothing when the sender comes again."""
    message = stripe("evt_old")
    lab.insist(message)
    lab.recover()
    lab.sql.execute("DELETE FROM hookonce.bodies")
    with redis.Redis.from_url(lab.environ["REDIS_URL"]) as client:
        client.flushdb()
    return lab.insist(message.again())


def neighbours_share_a_window(lab, neighbour):
    """Two ledgers in databases of one server share one Redis, and a sender sends the same event to both."""
    message = stripe("evt_of_both")
    for each in (neighbour, lab):
        each.insist(message)
        each.insist(message.again())
    lab.recover()


def restored_from_a_backup(lab, backup):
    """The ledger comes back from a backup that an acknowledged event is not in, on a timeline of its own."""
    lab.insist(stripe("evt_before"))
    lost = stripe("evt_lost")
    with backup.restored_after():
        lab.insist(lost)
    lab.history.deliveries.pop()  # what was promised then no ledger can keep; but the sender comes again
    lab.stop_receiver()
    lab.connect()
    lab.insist(lost.again())
    lab.recover()
