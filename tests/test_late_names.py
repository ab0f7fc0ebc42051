"""Packages that list what they offer once, for type checkers, and import it when it is first used."""

from importlib import import_module

import pytest

PACKAGES = ["hookonce", "hookonce.testing", "hookonce.providers.kit"]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_offers_each_name_that_it_lists(package):
    module = import_module(package)

    offered = module.__all__

    assert len(offered) == len(set(offered)) > 5
    assert [name for name in offered if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_name_that_a_package_lacks_is_refused(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'never_was'"):
        import_module(package).never_was  # noqa: B018
