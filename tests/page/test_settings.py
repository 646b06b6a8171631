"""The settings, readable in the page without their secrets; and the gate, tried, stopped and judged there."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import PHONE, Site, press_chord
from tests.page.conftest import Visit

pytestmark = pytest.mark.xdist_group("page-settings")
CHECK = "echo It began; while [ ! -e $OUTSIDE/go ]; do sleep 0.05; done; echo No module named shop; exit 1"
AGENT = '[agents.mine]\ncommand = ["mine", "--api-key", "hunter2"]\n'


@pytest.fixture(scope="module")
def settings() -> tuple[str, ...]:
    return f'[merge]\ncheck = "{CHECK}"\n', AGENT


def test_every_setting_is_shown_with_its_meaning_its_line_and_no_secret(visit: Visit, site: Site) -> None:
    page = visit("/#/board")
    press_chord(page, "g", ",")
    merge = page.get_by_role("region", name="The gate, and how work lands")
    expect(merge.get_by_text("The gate: the command that must pass")).to_be_visible()
    line = (site.line.root / "covey.toml").read_text().splitlines().index(f'check = "{CHECK}"') + 1
    expect(merge.get_by_text(f"line {line}, by default none")).to_be_visible()
    mine = page.get_by_role("region", name="agents.mine")
    expect(mine.get_by_text('["mine", "--api-key", "[removed]"]')).to_be_visible()
    assert "hunter2" not in page.content()
    page.get_by_role("searchbox", name="Search the settings").fill("dollars")
    expect(merge).to_have_count(0)
    expect(page.get_by_text("The most dollars that one run may spend; 0: no limit.")).to_be_visible()


def test_the_gate_is_tried_stopped_and_judged(visit: Visit, site: Site) -> None:
    page = visit("/#/settings", **PHONE)
    gate = page.get_by_role("region", name="The gate", exact=True)
    gate.get_by_role("button", name="Try the gate now").click()
    expect(gate.get_by_role("region", name="Log of")).to_contain_text("It began")
    page.reload()  # whoever comes back finds it at work
    gate.get_by_role("button", name="Stop").click()
    expect(gate.get_by_role("status")).to_contain_text("ended before it had a result: it was called off")
    site.line.mark("go").touch()
    gate.get_by_role("button", name="Try the gate now").click()
    expect(gate.get_by_role("status")).to_contain_text("The gate does not work here: No module named shop")
    expect(gate.get_by_role("status")).to_contain_text("covey init --check tries it again")


def test_settings_that_make_no_sense_are_told_and_those_from_before_are_shown(visit: Visit, site: Site) -> None:
    file = site.line.root / "covey.toml"
    before = file.read_text()
    file.write_text(f"{before}\n[budget]\ndya = 5\n")
    try:
        page = visit("/#/settings")
        expect(page.get_by_role("alert").get_by_text("Did you mean day?")).to_be_visible()
        expect(page.get_by_role("region", name="The gate", exact=True)).to_contain_text("It began")
    finally:
        file.write_text(before)
    expect(page.locator(".settings-problem")).to_have_count(0)
