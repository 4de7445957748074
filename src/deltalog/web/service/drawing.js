// How graphs look: Cytoscape.js draws, with the colours of the style sheet.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const fill = (kind, line, rest) => ({
  selector: `node.${kind}`,
  style: { "background-color": colour(`--${line}-fill`), "border-color": colour(`--${line}-line`), ...rest },
});
const stroke = (kind, style) => ({
  selector: `edge.${kind}`,
  style: { "line-color": colour(`--${kind}`), "target-arrow-color": colour(`--${kind}`), "line-style": style },
});

export const graphStyle = () => [
  {
    selector: "node",
    style: {
      label: "data(label)", width: "data(width)", height: "data(height)", "text-wrap": "wrap",
      "text-valign": "center", "font-family": colour("--mono"), "font-size": 12, color: colour("--ink"),
      "border-width": 1.5, shape: "round-rectangle",
    },
  },
  fill("base", "base", { shape: "barrel" }),
  fill("stored", "view", {}),
  fill("virtual", "view", { "border-style": "dashed", "background-opacity": 0 }),
  fill("generated", "generated", {}),
  {
    selector: "edge",
    style: {
      width: 1.5, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.9,
      "line-color": colour("--positive"), "target-arrow-color": colour("--positive"),
      label: "data(label)", "font-family": colour("--mono"), "font-size": 12, color: colour("--ink"), "font-weight": "bold",
      "text-background-color": colour("--paper"), "text-background-opacity": 0.95, "text-background-padding": 3,
      "text-background-shape": "round-rectangle", "loop-direction": "90deg", "control-point-step-size": 46,
    },
  },
  stroke("positive", "solid"),
  stroke("negative", "dashed"),
  stroke("aggregate", "dotted"),
  { selector: "edge.plus", style: { "line-color": colour("--plus"), "target-arrow-color": colour("--plus"), width: 3 } },
  { selector: "edge.minus", style: { "line-color": colour("--minus"), "target-arrow-color": colour("--minus"), width: 3, "line-style": "dashed" } },
  { selector: "edge.lit", style: { "line-color": colour("--lit"), "target-arrow-color": colour("--lit"), width: 4, "z-index": 9 } },
  { selector: "node.lit", style: { "border-color": colour("--lit"), "border-width": 3 } },
  { selector: ".faded", style: { opacity: 0.18 } },
  { selector: "node.chosen", style: { "border-width": 3.5 } },
];

export const makeGraph = (container, elements) => window.cytoscape({
  container, elements, style: graphStyle(), layout: { name: "preset" },
  minZoom: 0.05, maxZoom: 3, autounselectify: true, boxSelectionEnabled: false,
});

export const onSchemeChange = (act) => {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", act);
  return () => scheme.removeEventListener("change", act);
};
