"""Statements of the product, found by what they say and not by what they are called: for planted mistakes and plans."""


def texts(module):
    """Return the module's own texts by name, the docstring aside."""
    return {
        name: text
        for name, text in vars(module).items()
        if isinstance(text, str) and not name.startswith("__")
    }


def statement(module, part):
    """Return the one text of a module that says `part`."""
    (found,) = {text for text in texts(module).values() if part in text}
    return found


def reworded(module, *changes, within=""):
    """Return the texts of a module that (before, after) pairs change, by name; each must change one at least.

    `within` is what a text must say besides.
    """
    said = {name: text for name, text in texts(module).items() if within in text}
    new = dict(said)
    for before, after in changes:
        assert any(before in text for text in new.values()), f"{module.__name__} no longer says {before!r}"
        new = {name: text.replace(before, after) for name, text in new.items()}
    return {name: text for name, text in new.items() if text != said[name]}


def reword(patch, module, *changes, within=""):
    """Change what statements of a module say, for as long as pytest's `patch` lasts."""
    for name, text in reworded(module, *changes, within=within).items():
        patch.setattr(module, name, text)
