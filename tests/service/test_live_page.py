"""The page in a real Chromium: what is committed appears, what is tried does not, nothing freezes.

The pictures in the documentation are taken here, with `DELTALOG_UPDATE_CASES=1`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, Watched, browsing, needs_chromium
from serving import Service, serving

import deltalog
from deltalog.service.tokens import create_token
from deltalog.store.files import read_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/permissions"
PICTURES = ROOT / "docs/pictures"
PICTURE_BYTES_MAX = 200_000
UPDATE = bool(os.environ.get("DELTALOG_UPDATE_CASES"))
RULES = 'deny owned(D, O) :- document(D, O), not user(O, _) say "{D} has no owner".'
pytestmark = needs_chromium


def permissions() -> deltalog.MemoryDatabase:
    program = (FOLDER / "permissions.dl").read_text(encoding="utf-8")
    database = deltalog.connect(program=f"{program}\n{RULES}", engine="reference")
    with database.transaction() as tx:
        for path in sorted(FOLDER.glob("*.csv")):
            tx.insert(path.stem, read_rows(path, database.relations[path.stem].columns))
    return database


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(permissions()) as running:
        yield running


@pytest.fixture
def tab(browser: Any, service: Service) -> Iterator[Watched]:
    watched = Watched(browser, service.address)
    yield watched
    watched.context.close()
    assert watched.errors == []


def commit(service: Service, **sides: Any) -> None:
    assert service.post("/v1/transactions", sides).status_code == 200


def picture(page: Any, name: str) -> None:
    if UPDATE:
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=str(PICTURES / f"{name}.png"))


def test_the_network_lights_up_as_transactions_commit(tab: Watched, service: Service) -> None:
    page = tab.open("program")
    page.wait_for_selector(".canvas[data-nodes]")
    known = service.get("/v1/network").json()
    assert page.get_attribute(".canvas", "data-nodes") == str(len(known["nodes"]))
    page.wait_for_selector("text=Last commits")
    page.wait_for_selector(".status b")
    commit(service, insert={"member": [["ada", "web"]], "grant": [["web", "merger"]]})
    page.wait_for_selector(".canvas[data-lit]")
    assert page.locator(".flows li").first.is_visible()
    picture(page, "page-network")
    page.goto(f"{service.address}/#program/access")
    page.wait_for_selector("text=Upstream")
    assert page.locator(".chips button", has_text="denied").first.is_visible()
    page.keyboard.press("Escape")
    page.wait_for_selector("text=Last commits")
    page.click("text=Text")
    page.wait_for_selector("text=base user(name: str key")


def test_a_view_is_a_live_table_and_a_graph(tab: Watched, service: Service) -> None:
    page = tab.open("views/access")
    page.wait_for_selector(".state.live")
    before = service.get("/v1/views/access/rows").json()["total"]
    page.wait_for_selector(f'.count[data-total="{before}"]')
    commit(service, insert={"grant": [["web", "merger"]]})
    page.wait_for_selector(".rows tr.plus")
    total = service.get("/v1/views/access/rows").json()["total"]
    page.wait_for_selector(f'.count[data-total="{total}"]')
    picture(page, "page-view")
    commit(service, delete={"grant": [["web", "merger"]]})
    page.wait_for_selector(".rows tr.minus")
    assert page.locator(".log li").count() == 2 * (total - before)
    page.wait_for_selector(".rows tr.minus", state="detached")
    page.keyboard.press("/")
    page.keyboard.type("handbook")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.rows tbody tr:not(.space)')]"
        ".every((row) => row.textContent.includes('handbook'))"
    )
    page.goto(f"{service.address}/#views/member")
    page.click("text=Graph")
    page.wait_for_selector(".canvas[data-arcs]")
    members = service.get("/v1/views/member/rows").json()["total"]
    assert page.get_attribute(".canvas", "data-arcs") == str(members)
    commit(service, insert={"member": [["new", "web"]]})
    page.wait_for_selector(f'.canvas[data-arcs="{members + 1}"]')
    picture(page, "page-graph")


def test_a_paused_view_counts_what_it_skips(tab: Watched, service: Service) -> None:
    page = tab.open("views/grant")
    page.wait_for_selector(".state.live")
    page.keyboard.press("p")
    page.wait_for_selector("text=paused · 0 skipped")
    commit(service, insert={"grant": [["web", "merger"], ["sales", "merger"]]})
    page.wait_for_selector("text=paused · 2 skipped")
    assert page.locator(".rows tr.plus").count() == 0
    page.keyboard.press("p")
    page.wait_for_selector(".log li")
    assert page.locator(".log li").count() == 2


def test_bindings_follow_a_part(tab: Watched, service: Service) -> None:
    page = tab.open("views/belongs")
    page.wait_for_selector(".state.live")
    column = service.get("/v1/relations/belongs").json()["columns"][0]["name"]
    page.click("summary:has-text('Bindings')")
    page.fill(f'.bindings input[name="{column}"]', "ada")
    page.click("text=Follow only these")
    expected = service.get(f"/v1/views/belongs/rows?belongs.{column}=ada").json()["total"]
    page.wait_for_selector(f'.count[data-total="{expected}"]')


def test_a_transaction_is_tried_before_it_is_committed(tab: Watched, service: Service) -> None:
    page = tab.open("transaction")
    version = service.get("/v1/status").json()["version"]
    page.fill("textarea", '+grant("operations", "merger")\n-member("web", "engineering")')
    assert page.is_disabled("text=Commit")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=No violations.")
    page.wait_for_selector('text=access("omar", "merger")')
    assert service.get("/v1/status").json()["version"] == version
    picture(page, "page-transaction")
    page.click("button:has-text('Commit')")
    page.wait_for_selector(f"text=Committed as version {version + 1}")
    assert service.get("/v1/status").json()["version"] == version + 1
    page.fill("textarea", '+document("diary", "nobody")')
    page.click("text=What if?")
    page.wait_for_selector(".violations li:has-text('owned')")
    page.fill("textarea", "grant(1")
    page.click("text=What if?")
    page.wait_for_selector("text=Line 1 is not like")


def test_why_and_how_by_a_click(tab: Watched, service: Service) -> None:
    page = tab.open("views/access")
    page.click(".rows tbody tr:not(.space) >> nth=0")
    page.click("button:has-text('Why') >> nth=0")
    page.wait_for_selector(".proof:has-text('access(')")
    picture(page, "page-why")
    page.click("text=How to delete")
    page.wait_for_selector("text=Request a change of a view")
    assert page.input_value("textarea").startswith("-access(")


def test_alternatives_stand_side_by_side(tab: Watched, service: Service) -> None:
    page = tab.open("requests")
    page.fill("textarea", '+access("tom", "merger")')
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("article >> text=Alternative 2")
    picture(page, "page-alternatives")
    page.click("article:has-text('Alternative 1') >> button")
    page.wait_for_selector("text=Committed as version")
    found = service.post("/v1/query", {"query": 'access("tom", "merger")'}).json()
    assert found["total"] == 1


def test_rules_and_health(tab: Watched, service: Service) -> None:
    page = tab.open("rules")
    page.wait_for_selector("td:has-text('owned')")
    page.keyboard.press("6")
    page.wait_for_selector(".figure:has-text('commits per second')")
    made = service.call("PUT", "/v1/subscriptions/auditor", json={"view": "access"})
    assert made.status_code in (200, 201), made.text
    page.wait_for_selector("td:has-text('auditor')")
    page.wait_for_selector(".chart canvas")
    for number in range(12):
        commit(service, insert={"grant": [["web", f"plan {number}"]]})
        if UPDATE:
            page.wait_for_timeout(500 + 130 * (number % 4))
    page.wait_for_selector(".figure:has-text('ms')")
    picture(page, "page-health")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_has_no_sideways_scrolling(browser: Any, service: Service, scheme: str) -> None:
    watched = Watched(browser, service.address, color_scheme=scheme)
    watched.page.set_viewport_size(PHONE)
    for place in ("program", "views/access", "transaction", "requests", "rules", "health"):
        page = watched.open(place)
        page.wait_for_selector("main > *")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], place
    if scheme == "dark":
        page = watched.open("views/access")
        page.wait_for_selector(".rows tbody tr:not(.space)")
        picture(page, "page-phone")
    watched.context.close()


def test_text_is_never_markup(browser: Any) -> None:
    nasty = "<img src=x onerror=\"document.title='broken'\">"
    database = deltalog.connect(
        program="base note(text: str, more: str).\ncopy(T, M) :- note(T, M).",
        facts={"note": [(nasty, "x")]},
        engine="reference",
    )
    with serving(database) as service:
        watched = Watched(browser, service.address)
        page = watched.open("views/copy")
        page.wait_for_selector("td:has-text('onerror')")
        page.click("text=Graph")
        page.wait_for_selector(".canvas[data-arcs='1']")
        assert page.locator("main img").count() == 0
        assert page.title() == "Views · Deltalog"
        assert watched.errors == []
        watched.context.close()


def test_a_token_is_asked_for(browser: Any, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    shown = create_token(tokens, "ann", ["read"], [])
    with serving(permissions(), tokens=tokens) as service:
        watched = Watched(browser, service.address)
        page = watched.open("views/access")
        page.fill("input[type=password]", shown)
        page.click("text=Use it")
        page.wait_for_selector(".state.live")
        watched.context.close()


def test_a_large_delta_does_not_freeze_the_page(browser: Any) -> None:
    """While 100,000 rows arrive and leave, the page holds only those in sight."""
    database = deltalog.connect(program="base fact(a: int, b: int).", facts={"fact": [(0, 0)]})
    rows = [[number, number] for number in range(1, 100_001)]
    with serving(database) as service:
        watched = Watched(browser, service.address)
        page = watched.open("views/fact")
        page.wait_for_selector(".count[data-total='1']")
        page.evaluate(
            """() => { window.longest = 0; let last = performance.now();
            const tick = () => { const now = performance.now();
              window.longest = Math.max(window.longest, now - last); last = now;
              requestAnimationFrame(tick); }; requestAnimationFrame(tick); }"""
        )
        commit(service, insert={"fact": rows})
        page.wait_for_selector(".count[data-total='100001']")
        assert page.locator(".rows tbody tr").count() < 100
        page.evaluate("document.querySelector('.rows').scrollTop = 1500000")
        page.wait_for_function(
            "() => document.querySelectorAll('.rows tbody tr:not(.space)').length > 5"
        )
        commit(service, delete={"fact": rows})
        page.wait_for_selector(".count[data-total='1']")
        longest = page.evaluate("window.longest")
        print(f"the longest frame took {longest:.0f} ms")
        assert watched.errors == []
        watched.context.close()


@pytest.mark.parametrize("path", sorted(PICTURES.glob("page-*.png")), ids=lambda path: path.stem)
def test_pictures_are_small(path: Path) -> None:
    assert path.stat().st_size < PICTURE_BYTES_MAX
