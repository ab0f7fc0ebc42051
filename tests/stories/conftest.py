from tests.support.stories.fixtures import backup, lab, nurseries, wrong_lab

__all__ = ["backup", "lab", "nurseries", "wrong_lab"]
