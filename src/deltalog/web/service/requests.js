// View updates: what shall hold, and the alternatives that would bring it about, side by side.

import { Delta, Editor, Problem, html, number } from "./parts.js";

const { useState } = window.htmPreact;

const Alternative = ({ answer, apply, isBusy }) => html`<article class="panel">
  <h3>Alternative ${answer.number}</h3>
  <${Delta} delta=${{ inserted: answer.inserted, deleted: answer.deleted }} />
  ${answer.new_values.length > 0 && html`<p class="hint">New values: ${answer.new_values.map(String).join(", ")}</p>`}
  <details><summary>All that follows</summary><${Delta} delta=${answer.delta} /></details>
  <button class="primary" disabled=${isBusy || answer.new_values.length > 0} onClick=${apply}>Apply</button>
</article>`;

export const RequestsTab = ({ ask, draft, setDraft }) => {
  const text = draft.requests;
  const [state, setState] = useState({});
  const requests = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const setText = (value) => setDraft((all) => ({ ...all, requests: value }));
  const send = async (path, more, name) => {
    setState((before) => ({ ...before, isBusy: true, error: null }));
    try {
      const body = { requests: state.requests && path.endsWith("apply") ? state.requests : requests, ...more };
      const found = await ask(path, { method: "POST", body });
      setState({ [name]: found, requests });
    } catch (error) {
      setState((before) => ({ ...before, isBusy: false, error }));
    }
  };
  const search = () => requests.length && send("/v1/realize", {}, "found");
  const { found, made, error, isBusy } = state;
  return html`<section class="panel ask">
      <h2>Request a change of a view</h2>
      <p class="hint">What shall hold, <code>+access("ada", "roadmap")</code>, or shall not, <code>-access(…)</code>. The answers are changes of base facts that bring it about and violate no constraint.</p>
      <${Editor} value=${text} onInput=${setText} onSubmit=${search} label="Requests" placeholder='+access("ada", "merger")' rows=${3} />
      <div class="buttons"><button class="primary" disabled=${isBusy || !requests.length} onClick=${search}>Search alternatives</button></div>
      <${Problem} error=${error} />
    </section>
    <section class="alternatives" aria-live="polite">
      ${isBusy && html`<p class="hint">Searching …</p>`}
      ${found && html`
        ${found.already.map((each) => html`<p class="good">${each} is so already.</p>`)}
        ${found.hints.map((each) => html`<p class="hint">${each}</p>`)}
        ${!found.answers.length && html`<p class="hint">No alternative was found.</p>`}
        <div class="cards">${found.answers.map((answer) => html`<${Alternative} key=${answer.number} answer=${answer} isBusy=${isBusy}
          apply=${() => send("/v1/realize/apply", { number: answer.number, version: found.version }, "made")} />`)}</div>
        ${!found.is_complete && html`<p class="hint">There may be more: ${found.reasons.join("; ")}</p>`}`}
      ${made && html`<article class="panel"><h3>Committed as version ${number.format(made.version)}</h3><${Delta} delta=${made.delta} /></article>`}
    </section>`;
};
