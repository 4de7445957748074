// Constraints in violation, active rules with their last firings, and messages on their way out.

import { Problem, Table, fact, html, number, shown, useAsked } from "./parts.js";

const time = (text) => (text ? new Date(text.includes("T") ? text : `${text.replace(" ", "T")}Z`).toLocaleTimeString("en-GB") : "–");

const Outgoing = ({ ask, version }) => {
  const queue = useAsked(ask, "/v1/outbox", version);
  const dead = useAsked(ask, "/v1/dead-letters", version);
  const messages = useAsked(ask, "/v1/messages", version);
  if (messages.error) return html`<${Problem} error=${messages.error} />`;
  const { recipients = [], deliveries = [], rules = [] } = queue.data || {};
  const letters = dead.data?.dead_letters || [];
  return html`
    <${Table} columns=${["number", "rule", "message"]} empty="No rule has emitted a message."
      rows=${(messages.data?.messages || []).slice(-50).reverse().map((each) => [each.sequence, each.rule, `${each.name}(${each.arguments.map(shown).join(", ")})`])} />
    ${rules.length > 0 && html`<h3>Waiting</h3><${Table} columns=${["rule", "waiting", "dead"]} rows=${rules.map((each) => [each.rule, number.format(each.waiting), number.format(each.dead)])} />`}
    ${recipients.length > 0 && html`<h3>Recipients</h3><${Table} columns=${["recipient", "since", "stopped"]} rows=${recipients.map((each) => [each.name, each.since, each.stopped || "–"])} />`}
    ${deliveries.length > 0 && html`<h3>Deliveries</h3><${Table} columns=${["recipient", "rule", "delivered up to", "attempts", "last error"]}
      rows=${deliveries.map((each) => [each.recipient, each.rule, each.settled, each.attempts, each.error || "–"])} />`}
    ${letters.length > 0 && html`<h3>Dead letters</h3><${Table} columns=${["recipient", "number", "rule", "attempts", "error"]}
      rows=${letters.slice(0, 50).map((each) => [each.recipient, each.sequence, each.rule, each.attempts, each.error])} />`}`;
};

export const RulesTab = ({ ask, status }) => {
  const { version } = status;
  const constraints = useAsked(ask, "/v1/constraints", version);
  const violations = useAsked(ask, "/v1/violations", version);
  const rules = useAsked(ask, "/v1/rules", version);
  const firings = useAsked(ask, "/v1/rules/firings", version);
  const known = constraints.data?.constraints || [], broken = violations.data?.violations || [];
  const numberOf = (name) => broken.filter((each) => each.constraint === name).length;
  return html`
    <section class="panel"><h2>Constraints</h2>
      <${Problem} error=${constraints.error || violations.error} />
      <${Table} columns=${["constraint", "relation", "mode", "violations"]} empty="The program has no constraints."
        rows=${known.map((each) => [each.name, each.relation, each.mode, html`<b class=${numberOf(each.name) ? "bad" : "good"}>${number.format(numberOf(each.name))}</b>`])} />
      ${broken.length > 0 && html`<h3>In violation</h3><ul class="violations">${broken.slice(0, 100).map((each) => html`
        <li><b>${each.constraint}</b> ${each.message || fact(each.relation, each.fact)}</li>`)}</ul>`}
    </section>
    <section class="panel"><h2>Active rules</h2>
      <${Problem} error=${rules.error} />
      <${Table} columns=${["rule", "priority", "active", "firings", "last"]} empty="The program has no active rules."
        rows=${(rules.data?.rules || []).map((each) => [each.name, each.priority, each.is_active ? "yes" : "no", number.format(each.firings), time(each.last)])} />
    </section>
    <section class="panel"><h2>Last firings</h2>
      <${Problem} error=${firings.error} />
      <${Table} columns=${["version", "time", "rule", "instances"]} empty="No rule has fired since the service was started."
        rows=${(firings.data?.firings || []).slice(-50).reverse().map((each) => [`v${each.version}`, time(each.time), each.rule, each.instances.slice(0, 5).map((row) => row.map(shown).join(", ")).join(" · ")])} />
    </section>
    <section class="panel"><h2>Outbox</h2><${Outgoing} ask=${ask} version=${version} /></section>`;
};
