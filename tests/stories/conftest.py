from tests.stories.support.fixtures import lab, nurseries, wrong_lab

__all__ = ["lab", "nurseries", "wrong_lab"]
