"""What axe-core finds on every page: nothing, in dark on a wide screen, in light on a phone."""

import pytest

from tests.e2e.test_accessibility import audited, paths, require_nothing_is_found

__all__ = ["audited", "paths"]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_axe_finds_nothing(paths, audited, scheme, width):
    require_nothing_is_found(paths, audited(width=width, color_scheme=scheme))
