// Parts that several tabs use. All text becomes text nodes: nothing is ever inserted as HTML.

const { html, useEffect, useState } = window.htmPreact;
export { html };

export const number = new Intl.NumberFormat("en");
const ROWS_SHOWN = 200;

export const shown = (value) => (typeof value === "string" ? JSON.stringify(value) : String(value));
export const fact = (relation, cells) => `${relation}(${cells.map(shown).join(", ")})`;

export const Problem = ({ error }) => {
  if (!error) return null;
  const missing = error.status === 404 || error.status === 405;
  const problems = error.problems?.length ? error.problems : null;
  return html`<div class="problem" role="alert">
    ${problems ? problems.map((each) => html`<p><b>${each.code}</b> ${each.message}
      ${each.hint && html`<br /><small>${each.hint}</small>`}</p>`)
    : html`<p>${missing && !error.message ? "This service does not offer that." : error.message}</p>`}
  </div>`;
};

export const count = (facts) => Object.values(facts || {}).reduce((sum, rows) => sum + rows.length, 0);
const tally = (plus, minus) => [plus && `+${number.format(plus)}`, minus && `−${number.format(minus)}`].filter(Boolean).join(" ");

const Facts = ({ sign, relation, rows }) => html`
  ${rows.slice(0, ROWS_SHOWN).map((row) => html`
    <li class=${sign === "+" ? "plus" : "minus"}><i>${sign === "+" ? "+" : "−"}</i> ${fact(relation, row)}</li>`)}
  ${rows.length > ROWS_SHOWN && html`<li class="more">${number.format(rows.length - ROWS_SHOWN)} more</li>`}`;

// A delta by relation, those in `first` before all others; only a few are open at once.
export const Delta = ({ delta, first = [], empty = "Nothing changes." }) => {
  if (!delta) return null;
  const names = [...new Set([...first, ...Object.keys(delta.deleted), ...Object.keys(delta.inserted)])];
  const groups = names.map((name) => [name, delta.inserted[name] || [], delta.deleted[name] || []])
    .filter(([, plus, minus]) => plus.length || minus.length);
  if (!groups.length) return html`<p class="hint">${empty}</p>`;
  let room = 24;
  return html`<div class="delta">${groups.map(([name, plus, minus], index) => {
    room -= plus.length + minus.length;
    return html`<details key=${name} open=${index === 0 || room >= 0}>
      <summary><b>${name}</b> <small>${tally(plus.length, minus.length)}</small></summary>
      <ul><${Facts} sign="-" relation=${name} rows=${minus} /><${Facts} sign="+" relation=${name} rows=${plus} /></ul>
    </details>`;
  })}</div>`;
};

export const Table = ({ columns, rows, empty }) => (!rows.length ? html`<p class="hint">${empty}</p>` : html`
  <div class="scroll"><table>
    <thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`);

// What a request returns, asked again whenever `version` changes.
export const useAsked = (ask, path, version) => {
  const [state, setState] = useState({ data: null, error: null });
  useEffect(() => {
    let isOver = false;
    ask(path).then(
      (data) => !isOver && setState({ data, error: null }),
      (error) => !isOver && setState({ data: null, error }),
    );
    return () => { isOver = true; };
  }, [path, version]);
  return state;
};

// A text with line numbers, to be edited.
export const Editor = ({ value, onInput, onSubmit, label, placeholder, rows = 6 }) => {
  const lines = Math.max(value.split("\n").length, rows);
  const keys = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); onSubmit(); }
  };
  return html`<div class="editor">
    <pre aria-hidden="true">${Array.from({ length: lines }, (_, line) => line + 1).join("\n")}</pre>
    <textarea rows=${lines} value=${value} aria-label=${label} placeholder=${placeholder} spellcheck=${false}
      autocapitalize="off" autocomplete="off" wrap="off" onInput=${(event) => onInput(event.target.value)} onKeyDown=${keys} />
  </div>`;
};
