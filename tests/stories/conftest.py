from tests.support.stories.fixtures import (
    backup,
    django_lab,
    django_nursery,
    lab,
    made_lab,
    many_lab,
    nurseries,
    stack,
    wrong_lab,
)

__all__ = [
    "backup",
    "django_lab",
    "django_nursery",
    "lab",
    "made_lab",
    "many_lab",
    "nurseries",
    "stack",
    "wrong_lab",
]
