"""The examples of docs/how-to/testing.md, run by pytest-xdist."""

from tests.docs.test_testing_page import project, require_all_pass

__all__ = ["project"]


def test_examples_of_the_page_pass_in_two_processes(project):
    require_all_pass(project, "-n", "2")
