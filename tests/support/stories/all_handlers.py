"""The handlers of the stories and those of other kinds, for workers that run many at once."""

from tests.support.stories import handlers, other_handlers  # noqa: F401  which register them
