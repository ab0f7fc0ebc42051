"""How the generated pages are laid out."""


def table(columns, rows):
    """Write a Markdown table; cells may hold anything but line breaks."""
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def code(text):
    return f"`{text}`" if text else ""


def head(title, made_from, text=""):
    said = f"# {title}\n\nWritten by `make docs` from {made_from}; a test keeps it true.\n"
    return f"{said}\n{text}\n" if text else said


def _cell(text):
    return text.replace("|", "\\|")
