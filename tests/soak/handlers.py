"""The handlers of a soak: all there are, and then in a hurry."""

from tests.support.stories import all_handlers, hurried  # noqa: F401  in this order
