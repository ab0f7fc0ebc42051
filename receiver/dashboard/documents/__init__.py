"""The documents of this version: `search` finds sections in their pages, `pages` shows them under /admin/docs."""
