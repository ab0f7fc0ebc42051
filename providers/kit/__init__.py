"""Shared helpers for providers: signing schemes, strict reading, discovery."""
