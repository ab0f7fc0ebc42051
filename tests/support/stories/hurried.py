"""The handlers of the stories for stacks whose workers and servers are killed (`hurrying`)."""

import os

from tests.support.stories import (
    handlers,  # noqa: F401  which registers them
    hurrying,
)

if "STORY_DIRECTORY" in os.environ:  # set for the stack's processes only
    hurrying.hurry()
