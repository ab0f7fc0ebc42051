"""The stories themselves, without a verdict: the tests tell them, and tell them again with mistakes planted."""

from tests.stories.support.lab import Fuse
from tests.stories.support.sending import depot, github, stripe

MOST = 400


def cut_everywhere(lab, day):
    """Tell a day again and again, cut at the 1st, 2nd, … failpoint, until a day meets none.

    Gives, as long as the day goes on, the failpoint and what the checker said to that day.
    """
    for k in range(1, MOST):
        lab.fuse = Fuse(k, lab.directory / "failpoints")
        day(lab, f"{k}")
        lab.recover()
        met = lab.fuse.met
        violations = lab.violations()
        if lab.fuse.is_blown:
            yield met[k - 1], violations
        else:
            yield None, violations
            return
        lab.forget()
    raise AssertionError(f"more than {MOST} failpoints in a day")


def day_of_deliveries(lab, name):
    """A first copy, its retry, a twin at the same moment, a tampered and a forged one; batches; a repeat."""
    paid, twin = stripe(f"evt_{name}_paid"), stripe(f"evt_{name}_twin", "invoice.sent")
    lab.insist(paid)
    lab.insist(paid.again())
    lab.until(lambda: lab.sql.execute("SELECT max(deliveries) > 1 FROM events").fetchone()[0], "the count")
    lab.insist(paid.tampered())
    lab.deliver(paid.forged())
    lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(3))))
    lab.insist(github(f"push-{name}", ref=f"main-{name}"))
    lab.insist(github(f"push-{name}-again", ref=f"main-{name}"))
    lab.insist_at_once(twin, copies=2)


def day_of_work(lab, name):
    """Two handlers on an event, one of which fails once; a batch; a giving up; a sweep and two workers."""
    fuse, lab.fuse = lab.fuse, None
    lab.insist(stripe(f"evt_{name}_paid", fail=1, by="mail"))
    lab.insist(stripe(f"evt_{name}_never", "invoice.sent", give_up=True))
    lab.insist(depot(f"parcel_{name}_1", f"parcel_{name}_2"))
    lab.fuse = fuse
    lab.sweep()
    lab.work()
    lab.fuse = None if fuse.is_blown else fuse
    lab.sweep()
    lab.fuse = fuse


def day_in_a_hurry(lab, name):
    """A worker whose budget is over at once: it lets go of what it has not started, and rings for it."""
    fuse, lab.fuse = lab.fuse, None
    lab.insist(depot(*(f"parcel_{name}_{n}" for n in range(2))))
    lab.fuse = fuse
    lab.work(tight=True)
