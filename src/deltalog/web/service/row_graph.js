// A binary relation as a live graph: each row is an arc. What is inserted and deleted is coloured for a
// moment; nodes stay where they are, and new ones are placed by laying out again when many changed.

import { graphStyle, makeGraph, onSchemeChange } from "./drawing.js";
import { html, number, shown } from "./parts.js";

const { useEffect, useRef } = window.htmPreact;

const arcsOf = (rows) => new Map(rows.map((row) => [row.key, row]));

const update = (cy, rows) => {
  const wanted = arcsOf(rows);
  let isNew = false;
  cy.batch(() => {
    cy.edges().forEach((arc) => { if (!wanted.has(arc.id())) arc.remove(); });
    for (const [key, { cells, mark }] of wanted) {
      const ends = cells.map((cell) => `n ${shown(cell)}`);
      ends.forEach((id, index) => {
        if (cy.getElementById(id).empty()) {
          isNew = true;
          cy.add({ data: { id, label: String(cells[index]), width: Math.max(28, String(cells[index]).length * 8 + 18), height: 28 }, classes: "stored" });
        }
      });
      let arc = cy.getElementById(key);
      if (arc.empty()) {
        isNew = true;
        arc = cy.add({ data: { id: key, source: ends[0], target: ends[1], label: "" }, classes: "positive" });
      }
      arc.toggleClass("plus", mark === "+").toggleClass("minus", mark === "-");
    }
    cy.nodes().filter((node) => node.degree(true) === 0).remove();
  });
  return isNew;
};

export const RowGraph = ({ frame, limit }) => {
  const box = useRef(null), graph = useRef(null);
  useEffect(() => {
    graph.current = makeGraph(box.current, []);
    const stop = onSchemeChange(() => graph.current.style(graphStyle()));
    return () => { stop(); graph.current.destroy(); };
  }, []);
  useEffect(() => {
    const cy = graph.current;
    if (!update(cy, frame.rows)) return;
    const few = cy.edges().length <= 120;
    cy.layout(few ? { name: "dagre", rankDir: "LR", nodeSep: 18, rankSep: 70, animate: false, fit: true, padding: 24 }
      : { name: "concentric", animate: false, fit: true, padding: 24, minNodeSpacing: 12 }).run();
    if (cy.zoom() > 1.3) { cy.zoom(1.3); cy.center(); }
    Object.assign(box.current.dataset, { nodes: cy.nodes().length, arcs: cy.edges().length });
  }, [frame.rows]);
  return html`<div class="drawing">
    <div class="canvas" ref=${box} role="img" aria-label="The rows as a graph"></div>
    ${frame.length > limit && html`<p class="over">The newest ${limit} of ${number.format(frame.length)} arcs are drawn; a filter or bindings select others.</p>`}
  </div>`;
};
