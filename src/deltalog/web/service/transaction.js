// A transaction, tried before it is committed: its exact delta, and the violations that would refuse it.

import { Delta, Editor, Problem, count, fact, html, number, useAsked } from "./parts.js";

const { useEffect, useState } = window.htmPreact;

const LINE = /^([+=-])\s*([A-Za-z_]\w*)\s*\((.*)\)\s*\.?\s*$/;
const SIDES = { "+": "insert", "-": "delete", "=": "set" };

// Lines `+edge(1, "x")` as the body of a request; cells are JSON.
export const parseChanges = (text) => {
  const body = { insert: {}, delete: {}, set: {} };
  text.split("\n").forEach((line, index) => {
    if (!line.trim() || line.trim().startsWith("%")) return;
    const found = LINE.exec(line.trim());
    let cells = null;
    try { cells = found && JSON.parse(`[${found[3]}]`); } catch { /* reported below */ }
    if (!cells) throw new Error(`Line ${index + 1} is not like +relation(1, "text").`);
    (body[SIDES[found[1]]][found[2]] ||= []).push(cells);
  });
  return body;
};

const Violations = ({ violations }) => (!violations?.length ? html`<p class="good">No violations.</p>` : html`
  <ul class="violations">${violations.map((each) => html`
    <li><b>${each.constraint}</b> ${each.message || fact(each.relation, each.fact)}</li>`)}</ul>`);

const example = ({ name, columns }) => `+${name}(${columns.map(({ type }) => ({ int: "0", float: "0.0", bool: "true" })[type] || '""').join(", ")})`;

export const TransactionTab = ({ ask, draft, setDraft, status }) => {
  const text = draft.transaction;
  const [state, setState] = useState({});
  const { data } = useAsked(ask, "/v1/relations", status.history);
  const setText = (value) => { setDraft((all) => ({ ...all, transaction: value })); setState({}); };
  const run = (path) => async () => {
    setState((before) => ({ ...before, isBusy: true, error: null }));
    try {
      const body = parseChanges(text);
      if (path === "what-if") {
        setState({ tried: await ask("/v1/what-if", { method: "POST", body }) });
      } else {
        const headers = { "Idempotency-Key": crypto.randomUUID() };
        setState({ made: await ask("/v1/transactions", { method: "POST", body: { ...body, views: [] }, headers }) });
      }
    } catch (error) {
      setState({ error });
    }
  };
  const { tried, made, error, isBusy } = state;
  const first = (data?.relations || []).filter(({ kind }) => kind === "base").map(({ name }) => name);
  useEffect(() => { if (tried && status.version !== undefined && tried.version !== status.version) setState((before) => ({ ...before, isOld: true })); }, [status.version]);
  return html`<section class="panel">
      <h2>Try a transaction</h2>
      <p class="hint">One change per line: <code>+</code> inserts, <code>-</code> deletes, <code>=</code> replaces the fact with the same key. Ctrl+Enter tries it.</p>
      <ul class="chips">${(data?.relations || []).filter(({ kind }) => kind === "base").map((each) => html`
        <li><button onClick=${() => setText(`${text}${text && !text.endsWith("\n") ? "\n" : ""}${example(each)}`)}>${each.name}</button></li>`)}</ul>
      <${Editor} value=${text} onInput=${setText} onSubmit=${run("what-if")} label="Changes" placeholder='+member("ada", "storage")' />
      <div class="buttons">
        <button class=${tried ? "" : "primary"} disabled=${isBusy || !text.trim()} onClick=${run("what-if")}>What if?</button>
        <button class=${tried ? "primary" : ""} disabled=${isBusy || !tried} onClick=${run("commit")} title="Try it first">Commit</button>
      </div>
      <${Problem} error=${error} />
      ${error?.document?.violations?.length > 0 && html`<${Violations} violations=${error.document.violations} />`}
    </section>
    <section class="panel outcome" aria-live="polite">
      ${!tried && !made && html`<h2>Effect</h2><p class="hint">The exact change of every relation and view appears here before anything is committed.</p>`}
      ${tried && html`<h2>Would change ${number.format(count(tried.delta.inserted) + count(tried.delta.deleted))} facts</h2>
        ${state.isOld && html`<p class="hint">Another transaction was committed meanwhile: try it again.</p>`}
        <${Violations} violations=${tried.violations} /><${Delta} delta=${tried.delta} first=${first} />
        ${!tried.is_complete && html`<p class="hint">There are more than this.</p>`}`}
      ${made && html`<h2>Committed${made.version !== null && ` as version ${number.format(made.version)}`}</h2><${Delta} delta=${made.delta} empty="Nothing changed: all of it was so already." />`}
    </section>`;
};
