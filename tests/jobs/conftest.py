from inbox import desk

__all__ = ["desk"]
