// The page: a header with tabs, and one tab at a time. The address names what is shown, so it can be
// linked to. Keys: 1 to 6 choose a tab, p pauses, / goes to the filter, Escape closes a panel.

import { request } from "./client.js";
import { html, number } from "./parts.js";
import { ProgramTab } from "./program.js";
import { ViewsTab } from "./views.js";
import { TransactionTab } from "./transaction.js";
import { RequestsTab } from "./requests.js";
import { RulesTab } from "./rules.js";
import { HealthTab } from "./health.js";

const { render, useCallback, useEffect, useMemo, useRef, useState } = window.htmPreact;

const TABS = [
  ["program", "Program", ProgramTab],
  ["views", "Views", ViewsTab],
  ["transaction", "Transaction", TransactionTab],
  ["requests", "View update", RequestsTab],
  ["rules", "Rules", RulesTab],
  ["health", "Health", HealthTab],
];
const SAMPLES_MAX = 600;
const TOKEN = "deltalog token";

const readPlace = () => {
  const [tab, ...rest] = location.hash.replace(/^#/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { tab: TABS.some(([name]) => name === tab) ? tab : "program", rest };
};
const goTo = (...parts) => { location.hash = parts.map(encodeURIComponent).join("/"); };

const usePlace = () => {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const follow = () => setPlace(readPlace());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return place;
};

// How the service does, asked once a second while the page is visible.
const useStatus = (ask) => {
  const [status, setStatus] = useState({ samples: [], state: "connecting" });
  useEffect(() => {
    let isOver = false, timer = 0;
    const look = async () => {
      if (document.visibilityState === "visible") {
        try {
          const found = await ask("/v1/status");
          const sample = { ...found, at: Date.now() / 1000 };
          setStatus((before) => ({
            ...found, state: "live", samples: [...before.samples, sample].slice(-SAMPLES_MAX),
          }));
        } catch (error) {
          const state = error.status === 403 ? "limited" : error.status === 401 ? "locked" : "unreachable";
          setStatus((before) => ({ ...before, state }));
        }
      }
      if (!isOver) timer = setTimeout(look, 1000);
    };
    look();
    return () => { isOver = true; clearTimeout(timer); };
  }, [ask]);
  return status;
};

const STATES = {
  live: "live", connecting: "connecting …", unreachable: "not reachable, trying again",
  locked: "a token is needed", limited: "live, with a limited token",
};

const TokenForm = ({ onToken }) => {
  const [text, setText] = useState("");
  const submit = (event) => { event.preventDefault(); onToken(text.trim()); };
  return html`<form class="token panel" onSubmit=${submit}>
    <h2>A token is needed</h2>
    <p class="hint">Make one with <code>deltalog token create</code>. It is kept until this tab is closed.</p>
    <label>Token<input type="password" autocomplete="off" value=${text} onInput=${(e) => setText(e.target.value)} /></label>
    <button class="primary">Use it</button>
  </form>`;
};

const isTyping = (event) => /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);

const App = () => {
  const { tab, rest } = usePlace();
  const [token, setToken] = useState(() => sessionStorage.getItem(TOKEN) || "");
  const [isPaused, setPaused] = useState(false);
  const [draft, setDraft] = useState({ transaction: "", requests: "" });
  const current = useRef(token);
  current.current = token;
  const ask = useCallback((path, options = {}) => request(path, { token: current.current, ...options }), [token]);
  const status = useStatus(ask);
  const useToken = (text) => { sessionStorage.setItem(TOKEN, text); setToken(text); };

  useEffect(() => {
    const press = (event) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      const chosen = TABS[Number(event.key) - 1];
      if (chosen) goTo(chosen[0]);
      else if (event.key === "p") setPaused((before) => !before);
      else if (event.key === "/") {
        const filter = document.querySelector("[data-filter]");
        if (filter) { event.preventDefault(); filter.focus(); }
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);

  const [, title, Shown] = TABS.find(([name]) => name === tab);
  useEffect(() => { document.title = `${title} · Deltalog`; }, [title]);
  const shared = useMemo(() => ({ ask, token, goTo, setDraft }), [ask, token]);
  return html`
    <header>
      <a class="mark" href="#program"><svg viewBox="0 0 32 32" aria-hidden="true"><path d="M16 5 28 27H4Z" /></svg>Deltalog</a>
      <nav aria-label="Tabs">${TABS.map(([name, label], index) => html`
        <a href=${`#${name}`} aria-current=${name === tab ? "page" : undefined} title=${`key ${index + 1}`}>${label}</a>`)}
      </nav>
      <p class="status" role="status">
        <span class=${`dot ${status.state}`}></span><span class="words">${STATES[status.state]}</span>
        ${status.version !== undefined && html`<b title="version of the database">v${number.format(status.version)}</b>`}
      </p>
    </header>
    <main class=${tab}>
      ${status.state === "locked" ? html`<${TokenForm} onToken=${useToken} />` : html`
        <${Shown} ...${shared} rest=${rest} status=${status} draft=${draft} isPaused=${isPaused} setPaused=${setPaused} />`}
    </main>`;
};

render(html`<${App} />`, document.body);
