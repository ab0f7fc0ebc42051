from tests.stories.support.fixtures import backup, lab, nurseries, wrong_lab

__all__ = ["backup", "lab", "nurseries", "wrong_lab"]
