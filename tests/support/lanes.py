"""Lanes of tests: pure ones need no server, those with servers run beside each other, those that are alone come last.

The folder or the file says which lane a test runs in, so that one lane is collected without the others. The
controller of pytest-xdist hands out whole files, long ones first, and gives those of the lane `alone` to the one
worker that is left.
"""

import random
from functools import cache

import pytest
from xdist.scheduler import LoadFileScheduling

PURE, SERVERS, ALONE, LONG = "pure", "servers", "alone", "long"
USUAL = (PURE, SERVERS, ALONE)  # `make test`
ALL = (*USUAL, LONG)  # `make test-all`
SERVER_FIXTURES = frozenset({"servers", "data_directory"})

PURE_PLACES = (
    "bench",
    "commands/test_conduct.py",
    "config",
    "deploy/test_files.py",
    "deploy/test_kubernetes.py",
    "docs/test_contributing.py",
    "docs/test_framework_pages.py",
    "docs/test_length.py",
    "docs/test_guarantees.py",
    "docs/test_page_stamps.py",
    "docs/test_plain_sentences.py",
    "docs/test_pointers.py",
    "docs/test_questions.py",
    "docs/test_senders_page.py",
    "docs/test_three_tasks.py",
    "docs/test_tunnels_page.py",
    "frameworks/test_without_servers.py",
    "http/test_fuzz_providers.py",
    "http/test_reference.py",
    "idempotency/test_fingerprint.py",
    "intake/test_explain.py",
    "intake/test_group_commit.py",
    "intake/test_pipeline.py",
    "jobs/alerts/test_missing_deliveries.py",
    "jobs/slots/test_capacity.py",
    "jobs/test_handler_signature.py",
    "jobs/test_handlers.py",
    "jobs/test_on_batch.py",
    "jobs/test_typed_handlers.py",
    "ledger/test_run_limits.py",
    "ledger/test_status_spelling.py",
    "mutants",
    "outbound/test_key_fetcher.py",
    "privacy/test_masking.py",
    "providers",
    "redis/test_circuit_breaker.py",
    "redis/test_workers.py",
    "samples",
    "stories/test_history.py",
    "test_architecture.py",
    "test_encryption.py",
    "test_suite.py",
    "test_unused_names.py",
    "testing/test_sample_events.py",
    "web/http/test_differential.py",
    "web/http/test_limits.py",
    "web/http/test_transport.py",
    "web/test_worker.py",
)
ALONE_PLACES = (
    "dev/test_reloading_time.py",
    "http/test_all_attacks.py",
    "http/test_attacks.py",
    "http/test_half_open_tls.py",
    "http/test_hostile_network.py",
)
TOGETHER = ("e2e",)
LONG_PLACES = (
    "docs/test_examples_in_two_processes.py",
    "docs/test_framework_commands.py",
    "docs/test_recorded_session.py",
    "e2e/test_accessibility_crosswise.py",
    "http/test_all_attacks.py",
    "packages",
    "stories/long",
    "vendors",
)
FIRST_PLACES = (
    "stories/long",
    "e2e",
    "stories/test_crash_loop.py",
    "stories/test_crash_loop_of_many.py",
    "stories",
    "jobs/slots",
    "jobs",
    "providers/test_cost_before_proof.py",
    "providers/test_contract.py",
)
"""What takes longest is handed out first, so that no worker is left with it at the end."""


def lane_of(test):
    """Return the lane of a file of tests, given as a path below tests/ or a test's id."""
    return lane_of_file(test.split("::", 1)[0].removeprefix("tests/"))


@cache
def lane_of_file(place):
    for lane, places in ((LONG, LONG_PLACES), (ALONE, ALONE_PLACES), (PURE, PURE_PLACES)):
        if is_below(place, places):
            return lane
    return SERVERS


def is_below(place, places):
    return any(place == each or place.startswith(f"{each}/") for each in places)


def is_asked(item, asked):
    """Tell whether an item belongs to one of the lanes that are asked for; what is marked long is so anywhere."""
    return (LONG if item.get_closest_marker(LONG) else lane_of(item.nodeid)) in asked


def runs_alone(test):
    """Tell whether a test runs when all others have ended: one of the lane `alone`, or a long one that is alone too."""
    return is_below(test.split("::", 1)[0].removeprefix("tests/"), ALONE_PLACES)


def check(item):
    """Fail a pure test that asks for a server."""
    wanted = SERVER_FIXTURES & set(item.fixturenames)
    if wanted and lane_of(item.nodeid) == PURE:
        pytest.fail(f"wants {min(wanted)}: its place in tests/support/lanes.py is not pure", pytrace=False)


def turn_of(test_id, *, shuffled):
    """Return the key of the order of tests: the lane `alone` last, long ones first unless the order is shuffled."""
    place = test_id.split("::", 1)[0].removeprefix("tests/")
    known = 0 if shuffled else len(FIRST_PLACES)
    first = next(
        (number for number in range(known) if is_below(place, FIRST_PLACES[number : number + 1])), known
    )
    return runs_alone(test_id), first


def shuffle(items, seed):
    """Put the files, and the tests of each file, in an order that the seed decides."""
    chance = random.Random(seed)  # noqa: S311  an order, no secret
    chance.shuffle(items)
    files = sorted({item.path for item in items})
    chance.shuffle(files)
    items.sort(key=lambda item: files.index(item.path))


class LaneScheduling(LoadFileScheduling):
    """Gives each worker whole files; the files of the lane `alone` to one worker, when all others have ended.

    All that looks at pages goes to one worker: a browser and the stack it looks at are dear to start.
    """

    def __init__(self, config, log=None):
        config.option.loadscopereorder = False  # by the number of tests, which would mix the lanes
        super().__init__(config, log)

    def _split_scope(self, nodeid):
        place = super()._split_scope(nodeid)
        return next((each for each in TOGETHER if place.startswith(f"tests/{each}/")), place)

    def mark_test_complete(self, node, item_index, duration=0):
        super().mark_test_complete(node, item_index, duration)
        if node is not self.last_worker:
            self._reschedule(self.last_worker)

    @property
    def last_worker(self):
        return self.nodes[0]

    def _reschedule(self, node):
        if node.shutting_down:
            return
        if not self.workqueue or (self.only_alone_is_left and node is not self.last_worker):
            node.shutdown()
        elif self._pending_of(self.assigned_work[node]) <= 1:  # it begins a test when it knows the next one
            self._assign_work_unit(node)

    def _assign_work_unit(self, node):
        if not self.only_alone_is_left or (
            node is self.last_worker and not any(map(self._is_busy, self.nodes[1:]))
        ):
            super()._assign_work_unit(node)

    @property
    def only_alone_is_left(self):
        return all(map(runs_alone, self.workqueue))

    def _is_busy(self, node):
        return self._pending_of(self.assigned_work[node]) > 0
