from tests.support.inbox import inbox
from tests.support.shop import shop

__all__ = ["inbox", "shop"]
