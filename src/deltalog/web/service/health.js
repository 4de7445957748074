// Health: commits per second, how long they take, and how far behind each subscriber is.

import { onSchemeChange } from "./drawing.js";
import { Problem, Table, html, number, useAsked } from "./parts.js";

const { useEffect, useRef } = window.htmPreact;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

const Chart = ({ title, unit, times, lines }) => {
  const box = useRef(null), plot = useRef(null);
  const data = [times, ...lines.map(({ values }) => values)];
  const make = () => {
    plot.current?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui" };
    plot.current = new window.uPlot({
      width: box.current.clientWidth, height: 190, legend: { show: false }, cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] } },
      axes: [{ ...axis, space: 80, incrs: [1, 2, 5, 10, 30, 60, 120, 300], values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => number.format(tick)) }],
      series: [{}, ...lines.map(({ line, name }) => ({ label: name, stroke: colour(line), width: 2, points: { show: false }, fill: lines.length === 1 ? `${colour(line)}22` : undefined }))],
    }, data, box.current);
  };
  useEffect(() => {
    make();
    const stop = onSchemeChange(make);
    const observer = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height: 190 }));
    observer.observe(box.current);
    return () => { stop(); observer.disconnect(); plot.current.destroy(); };
  }, []);
  useEffect(() => { plot.current?.setData(data); }, [times.length, times[times.length - 1]]);
  return html`<section class="panel chart"><h2>${title} <small>${unit}</small></h2>
    ${lines.length > 1 && html`<ul class="legend">${lines.map(({ name, line }) => html`<li class=${`line ${line.slice(2)}`}>${name}</li>`)}</ul>`}
    <div ref=${box} role="img" aria-label=${`${title}, ${unit}`}></div></section>`;
};

const rates = (samples) => samples.map((sample, index) => {
  const before = samples[index - 1];
  return before ? Math.max(0, (sample.version - before.version) / Math.max(sample.at - before.at, 0.001)) : 0;
});
const milliseconds = (seconds) => (seconds === null || seconds === undefined ? null : seconds * 1000);
const duration = (seconds) => {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"]].map(([size, unit]) => [Math.floor(seconds / size), unit, size]);
  const [amount, unit] = parts.find(([each]) => each > 0) || [Math.floor(seconds), "s"];
  return `${amount} ${unit}`;
};
const limit = (seconds) => (milliseconds(seconds) === null ? "–" : `≤ ${number.format(milliseconds(seconds))} ms`);

const bindings = (each) => Object.entries(each.bindings).map((pair) => pair.join(" = ")).join(", ") || "–";
const Figure = ({ name, children }) => html`<div class="figure"><b>${children}</b><span>${name}</span></div>`;

export const HealthTab = ({ ask, status }) => {
  const { samples } = status;
  const subscribers = useAsked(ask, "/v1/subscriptions", samples.length);
  const listed = subscribers.data?.subscriptions || [];
  const open = useAsked(ask, "/v1/streams", samples.length);
  const times = samples.map(({ at }) => at);
  const known = rates(samples);
  return html`
    <section class="figures">
      <${Figure} name="version">${number.format(status.version ?? 0)}<//>
      <${Figure} name="commits per second">${number.format(Math.round((known[known.length - 1] || 0) * 10) / 10)}<//>
      <${Figure} name="commit, half of them">${limit(status.p50)}<//>
      <${Figure} name="commit, 99 of 100">${limit(status.p99)}<//>
      <${Figure} name="refused">${number.format(status.refused ?? 0)}<//>
      <${Figure} name="running">${duration(status.seconds ?? 0)}<//>
    </section>
    <${Chart} title="Commits" unit="per second" times=${times} lines=${[{ name: "commits", line: "--accent", values: known }]} />
    <${Chart} title="Latency of commits" unit="milliseconds, upper bounds" times=${times}
      lines=${[{ name: "half of them", line: "--plus", values: samples.map(({ p50 }) => milliseconds(p50)) }, { name: "99 of 100", line: "--lit", values: samples.map(({ p99 }) => milliseconds(p99)) }]} />
    <section class="panel wide"><h2>Open streams <small>${number.format(open.data?.readers ?? 0)}</small></h2>
      ${open.error ? html`<${Problem} error=${open.error} />`
    : html`<${Table} columns=${["view", "bindings", "precision", "readers", "commits behind"]} empty="Nobody follows a view."
        rows=${(open.data?.streams || []).slice(0, 100).map((each) => [each.view, bindings(each), each.precision, number.format(each.readers), number.format(each.commits_behind)])} />`}
    </section>
    <section class="panel wide"><h2>Durable subscriptions</h2>
      ${subscribers.error ? (subscribers.error.status === 404 ? html`<p class="hint">This service does not list its subscribers.</p>` : html`<${Problem} error=${subscribers.error} />`)
    : html`<${Table} columns=${["name", "owner", "view", "bindings", "state", "commits behind", "bytes behind"]} empty="Nobody has subscribed durably."
        rows=${listed.map((each) => [each.name, each.owner, each.view, bindings(each), each.state, number.format(each.versions_behind), number.format(each.bytes_behind)])} />`}
    </section>`;
};
