// Any relation as a live table: only the rows in sight are in the document. Binary ones also as a graph.

import { RowGraph } from "./row_graph.js";
import { html, number, shown, fact, useAsked } from "./parts.js";
import { RowPanel } from "./why.js";
import { useLiveView } from "./live.js";

const { useEffect, useMemo, useRef, useState } = window.htmPreact;

const HEIGHT = 30; // of a row, as in page.css
const SCROLL_MAX = 8_000_000; // browsers lay out no element that is much higher
const GRAPH_ARCS_MAX = 400;
const LOG = 60;

const useScroll = () => {
  const box = useRef(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const look = () => setPlace({ top: element.scrollTop, height: element.clientHeight });
    look();
    element.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => { element.removeEventListener("scroll", look); observer.disconnect(); };
  }, []);
  return [box, place];
};

const Rows = ({ relation, frame, place, box, onRow, chosen }) => {
  const whole = Math.min(frame.length * HEIGHT, SCROLL_MAX);
  const top = useRef(null), rest = useRef(null);
  const first = Math.min(frame.start, frame.length);
  const above = whole === frame.length * HEIGHT ? first * HEIGHT
    : Math.min(place.top, whole - frame.rows.length * HEIGHT);
  useEffect(() => {
    top.current.style.height = `${Math.max(above, 0)}px`;
    rest.current.style.height = `${Math.max(whole - above - frame.rows.length * HEIGHT, 0)}px`;
  }, [above, whole, frame.rows.length]);
  const keys = (event, row) => {
    const move = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (move && event.target[move]) { event.preventDefault(); event.target[move].focus(); }
    if (event.key === "Enter") onRow(row);
  };
  return html`<div class="rows scroll" ref=${box}>
    <table aria-rowcount=${frame.total}>
      <thead><tr>${relation.columns.map((column) => html`
        <th scope="col">${column.name}${column.key && html`<span class="key" title="part of the key"> key</span>`}<small>${column.type}</small></th>`)}</tr></thead>
      <tbody>
        <tr class="space"><td ref=${top} colspan=${relation.columns.length}></td></tr>
        ${frame.rows.map((row) => html`
          <tr key=${row.mark + row.key} class=${row.mark === "+" ? "plus" : row.mark === "-" ? "minus" : ""}
            aria-selected=${chosen === row.key} tabindex="0" onClick=${() => onRow(row)} onKeyDown=${(e) => keys(e, row)}>
            ${row.cells.map((cell) => html`<td>${shown(cell)}</td>`)}</tr>`)}
        <tr class="space"><td ref=${rest} colspan=${relation.columns.length}></td></tr>
      </tbody>
    </table>
    ${frame.state === "live" && !frame.length && html`<p class="hint">No facts.</p>`}
  </div>`;
};

const startOf = (frame, place) => {
  const whole = frame.length * HEIGHT;
  if (whole <= SCROLL_MAX) return Math.floor(place.top / HEIGHT);
  return Math.floor((place.top / Math.max(SCROLL_MAX - place.height, 1)) * Math.max(frame.length - place.height / HEIGHT, 0));
};

const LiveView = ({ relation, token, ask, goTo, setDraft, isPaused, setPaused, status, bindings, setBindings }) => {
  const [box, place] = useScroll();
  const [filter, setFilter] = useState("");
  const [kind, setKind] = useState("table");
  const [chosen, setChosen] = useState(null);
  const last = useRef({ length: 0 });
  const isGraph = kind === "graph";
  const wanted = {
    start: isGraph ? 0 : startOf(last.current, place), filter, isPaused, logCount: LOG,
    count: isGraph ? GRAPH_ARCS_MAX : Math.ceil(place.height / HEIGHT) + 6,
  };
  const frame = useLiveView(relation.name, bindings, token, wanted);
  last.current = frame;
  useEffect(() => {
    const close = (event) => { if (event.key === "Escape") setChosen(null); };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  const bind = (event) => { event.preventDefault(); setBindings(Object.fromEntries([...new FormData(event.target)].filter(([, v]) => v !== ""))); };
  return html`<section class="live">
    <div class="tools">
      <h2>${relation.name}</h2>
      <span class="count" data-total=${frame.total}>${number.format(frame.total)} facts</span>
      <span class=${`state ${frame.state}`}>${frame.isReading ? "reading …" : frame.state}</span>
      ${isPaused && html`<span class="skipped" role="status">paused · ${number.format(frame.skipped || 0)} skipped</span>`}
      <span class="gap"></span>
      <input data-filter type="search" placeholder="filter   /" aria-label="Filter rows" value=${filter} onInput=${(e) => setFilter(e.target.value)} />
      ${relation.columns.length === 2 && html`<div class="switch" role="group" aria-label="Show as">
        <button aria-pressed=${!isGraph} onClick=${() => setKind("table")}>Table</button>
        <button aria-pressed=${isGraph} onClick=${() => setKind("graph")}>Graph</button></div>`}
      <button aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)} title="key p">${isPaused ? "Resume" : "Pause"}</button>
    </div>
    <details class="bindings" open=${Object.keys(bindings).length > 0}>
      <summary>Bindings${Object.keys(bindings).length ? `: ${Object.entries(bindings).map((b) => b.join(" = ")).join(", ")}` : ""}</summary>
      <form onSubmit=${bind}>${relation.columns.map((column) => html`
        <label>${column.name}<input name=${column.name} defaultValue=${bindings[column.name] || ""} placeholder=${column.type} /></label>`)}
        <button>Follow only these</button></form>
    </details>
    ${frame.failure && html`<div class="problem" role="alert"><p>${frame.failure.message}</p></div>`}
    <div class="body">
      <div class=${isGraph ? "away" : "shown"}><${Rows} relation=${relation} frame=${frame} place=${place} box=${box} chosen=${chosen?.key} onRow=${setChosen} /></div>
      ${isGraph && html`<${RowGraph} frame=${frame} limit=${GRAPH_ARCS_MAX} />`}
      <aside aria-label="Changes and explanations">
        ${chosen ? html`<${RowPanel} ask=${ask} goTo=${goTo} setDraft=${setDraft} status=${status} relation=${relation} row=${chosen} close=${() => setChosen(null)} />` : html`
        <h3>Changes</h3>
        ${!frame.log.length && html`<p class="hint">Changes appear here as they are committed. Select a row to ask why it holds.</p>`}
        <ol class="log">${frame.log.map((each) => html`
          <li key=${each.number} class=${each.sign === "+" ? "plus" : "minus"}><small>v${each.version}</small><i>${each.sign === "+" ? "+" : "−"}</i>${each.cells.map(shown).join(", ")}</li>`)}</ol>`}
      </aside>
    </div>
  </section>`;
};

export const ViewsTab = (props) => {
  const { ask, rest, goTo, status } = props;
  const { data, error } = useAsked(ask, "/v1/relations", status.history);
  const [bindings, setBindings] = useState({});
  const relations = useMemo(() => [...(data?.relations || [])].sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "view" ? -1 : 1)), [data]);
  const name = rest[0] || relations[0]?.name;
  const relation = relations.find((each) => each.name === name);
  useEffect(() => setBindings({}), [name]);
  const group = (kind, title) => html`<h3>${title}</h3><ul>${relations.filter((each) => each.kind === kind).map((each) => html`
    <li><a href=${`#views/${encodeURIComponent(each.name)}`} aria-current=${each.name === name ? "true" : undefined}>${each.name}
      ${each.kind === "view" && !each.is_stored && html`<small>virtual</small>`}</a></li>`)}</ul>`;
  return html`
    <nav class="names" aria-label="Relations">
      <select aria-label="Relation" value=${name} onChange=${(e) => goTo("views", e.target.value)}>
        ${relations.map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select>
      ${group("view", "Views")}${group("base", "Base relations")}
      ${error && html`<p class="problem">${error.message}</p>`}
    </nav>
    ${relation ? html`<${LiveView} key=${relation.name} ...${props} relation=${relation} bindings=${bindings} setBindings=${setBindings} />`
    : html`<p class="hint">${data ? `There is no relation ${name || ""}.` : "Reading …"}</p>`}`;
};

export { fact };
