from tests.support.shop_sources import open_sources

__all__ = ["open_sources"]
