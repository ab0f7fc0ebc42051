"""Rows of the ledger are answers: no model of the desk repeats one field for field."""

import importlib
import pkgutil
from dataclasses import fields, is_dataclass

from pydantic import BaseModel

from hookonce.receiver import desk, ledger
from hookonce.receiver.desk.models import RequestModel, ResponseModel
from hookonce.receiver.desk.registry import ACTIONS

REPEATED = {("EventFilter", "Filter")}
"""Requests that may repeat a row: this one is read from a client's text, and the ledger's filter is not."""


def classes_of(package):
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    modules = [importlib.import_module(name) for name in names if ".migrations." not in name]
    return {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
    }


def fields_of(each):
    if issubclass(each, BaseModel):
        return {*each.model_fields}
    return {field.name for field in fields(each)} if is_dataclass(each) else {*getattr(each, "_fields", ())}


def own_fields(model):
    """Fields of a model that says them itself; a model that adds to another repeats nothing."""
    return fields_of(model) if {RequestModel, ResponseModel} & {*model.__bases__} else set()


def test_no_model_of_the_desk_repeats_a_row_of_the_ledger():
    assert ACTIONS
    models = [each for each in classes_of(desk) if issubclass(each, RequestModel | ResponseModel)]
    rows = [each for each in classes_of(ledger) if len(fields_of(each)) > 1]

    twins = {
        (model.__name__, row.__name__)
        for model in models
        for row in rows
        if len(own_fields(model) & fields_of(row)) > 2 and len(own_fields(model) ^ fields_of(row)) <= 2
    }

    assert twins == REPEATED
