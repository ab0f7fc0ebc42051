"""Figures in the words of pages: each stands in a mark that names it, and is written from the runs that are kept.

`<!--=new_rate-->3,245<!--/-->` is the figure of the table. A mark may hold a sum of products as well, of figures and
numbers, and the date or commit of a run: `<!--=1000*cpu_receiver_us/1e6-->`, `<!--=latest.date-->`.
"""

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from bench.report.figures import Figure

MARK = re.compile(r"<!--=(?P<of>\S+?)-->(?P<text>.*?)<!--/-->")
_TERM = re.compile(r"([*/]?)([\w.]+)")


def written(page: str, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page with each marked figure as the runs have it. Raises `LookupError` for one that they lack."""
    return MARK.sub(lambda mark: f"<!--={mark['of']}-->{said(mark['of'], runs)}<!--/-->", page)


def missing(pages: Iterable[str], runs: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return which figure pages quote that the runs lack; None if they have all."""
    try:
        for page in pages:
            written(page, runs)
    except LookupError as error:
        return str(error.args[0])
    return None


def said(mark: str, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a mark stands for."""
    run, _, what = mark.partition(".")
    if run in runs:
        return str(runs[run].get(what, "unknown"))
    return number(sum(_product(term, runs) for term in mark.split("+")))


def number(value: float) -> str:
    """Write a number as the table does: three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004  three digits


def cpu_to_empty(found: Mapping[str, Any], figure: Figure) -> str:
    """Return the CPU of each event of a rate ÷ that of a request to the empty route; nothing where one is missing."""
    each, empty = (found["figures"].get(name) for name in (figure.cpu, "cpu_empty_us"))
    return number(each["value"] / empty["value"]) if each and empty else ""


def _product(term: str, runs: Mapping[str, Mapping[str, Any]]) -> float:
    return prod(_value(name, runs) ** (-1 if sign == "/" else 1) for sign, name in _TERM.findall(term))


def _value(name: str, runs: Mapping[str, Mapping[str, Any]]) -> float:
    if name[0].isdigit():
        return float(name)
    run = "growth" if name.startswith("growth_") else "latest"
    if name not in runs[run]["figures"]:
        raise LookupError(f"the run lacks the figure '{name}' that a page quotes")
    return float(runs[run]["figures"][name]["value"])
