import ast

from tests.mutants.mutant import ROOT, mutants
from tests.mutants.record import recorded
from tests.mutants.site import site_of, with_probes
from tests.mutants.trial import Verdict

ALL = mutants()


def test_sixty_mutants_have_names_of_their_own_and_most_are_in_the_core():
    assert len({each.name for each in ALL}) == len(ALL) >= 60
    assert sum(each.is_core for each in ALL) >= 40


def test_mutants_fit_the_product_and_change_it():
    for mutant in ALL:
        text = (ROOT / mutant.file).read_text()

        planted = mutant.planted(text)

        assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(text)), mutant.name


def test_probe_can_stand_before_the_line_of_each_mutant():
    for mutant in ALL:
        site = site_of(ROOT, mutant)

        ast.parse(with_probes((ROOT / site.file).read_text(), [site]))


def test_suite_of_before_has_a_verdict_for_each_mutant():
    said = recorded()

    assert set(said) == {each.name for each in ALL}
    assert {each["verdict"] for each in said.values()} <= set(Verdict)
    assert all(each.get("by") for each in said.values() if each["verdict"] == Verdict.CAUGHT)
