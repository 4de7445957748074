// Questions about one row: why it holds, why it changed, and how it could be changed.

import { Problem, fact, html } from "./parts.js";

const { useEffect, useState } = window.htmPreact;

const text = (answer) => (typeof answer.text === "string" ? answer.text : JSON.stringify(answer, null, 2));
const missing = (error) => (["E1723", "E1734"].includes(error.document?.code)
  ? { message: "This service does not offer explanations." } : error);

export const RowPanel = ({ ask, goTo, setDraft, relation, row, close }) => {
  const [state, setState] = useState({});
  const written = fact(relation.name, row.cells);
  const put = (question) => async () => {
    setState({ question, isBusy: true });
    try {
      setState({ question, answer: await ask(`/v1/${question}`, { method: "POST", body: { fact: written, ...(question === "why-changed" && row.version ? { version: row.version } : {}) } }) });
    } catch (error) {
      setState({ question, error: missing(error) });
    }
  };
  useEffect(() => { setState({}); }, [written]);
  const toRequest = () => { setDraft((all) => ({ ...all, requests: `-${written}` })); goTo("requests"); };
  const toTransaction = () => { setDraft((all) => ({ ...all, transaction: `-${written}` })); goTo("transaction"); };
  const button = (question, label) => html`<button aria-pressed=${state.question === question} onClick=${put(question)}>${label}</button>`;
  return html`<div class="asked">
    <div class="head"><h3>${written}</h3><button class="quiet" onClick=${close} aria-label="Close">✕</button></div>
    <div class="buttons">
      ${row.mark === "-" ? button("why-not", "Why not") : button("why", "Why")}${button("why-changed", "Why changed")}
      ${relation.kind === "base" ? html`<button onClick=${toTransaction}>Delete …</button>`
    : html`<button onClick=${toRequest}>How to delete …</button>`}
    </div>
    ${state.isBusy && html`<p class="hint">Asking …</p>`}
    <${Problem} error=${state.error} />
    ${state.answer && html`<pre class="proof">${text(state.answer)}</pre>`}
  </div>`;
};
