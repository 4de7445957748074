// Shows the graph in #data: Cytoscape.js draws, dagre lays out, the panel shows the details.
// Selecting a node highlights everything it depends on and everything that depends on it.
"use strict";
(() => {
  const graph = JSON.parse(document.getElementById("data").textContent);
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  const at = (id) => document.getElementById(id);
  const styleOf = ({ kind, is_stored }) =>
    kind !== "view" ? kind : is_stored ? "stored" : "virtual";
  const prefix = { positive: "", negative: "not\n", aggregate: "aggregate\n" };
  const FONT = 13;

  const element = (tag, text, ...children) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };

  // --- the drawing

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const family = colour("--mono");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${FONT}px ${family}`;
  const widthOf = (text) =>
    Math.max(...text.split("\n").map((line) => pen.measureText(line).width));

  const shorten = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);

  const drawnNode = (node) => {
    const label = [node.name, node.note].filter(Boolean).map(shorten).join("\n");
    const size = { width: widthOf(label) + 28, height: node.note ? 48 : 34 };
    return { data: { id: node.name, label, ...size }, classes: styleOf(node) };
  };
  const drawnArc = (arc, number) => ({
    data: {
      id: `arc ${number}`, source: arc.source, target: arc.target, number,
      label: prefix[arc.kind] + arc.label.replace(": ", "\n"),
    },
    classes: arc.kind + (arc.source === arc.target ? "" : " routed"),
  });

  const fill = (kind, line, rest) => ({
    selector: `node.${kind}`,
    style: { "background-color": colour(`--${line}-fill`), "border-color": colour(`--${line}-line`), ...rest },
  });
  const stroke = (kind, style) => ({
    selector: `edge.${kind}`,
    style: {
      "line-color": colour(`--${kind}`), "target-arrow-color": colour(`--${kind}`),
      color: colour(`--${kind}`), "line-style": style,
    },
  });
  const style = () => [
    {
      selector: "node",
      style: {
        label: "data(label)", width: "data(width)", height: "data(height)", "text-wrap": "wrap",
        "text-valign": "center", "font-family": family, "font-size": FONT, color: colour("--ink"),
        "border-width": 1.5, shape: "rectangle",
      },
    },
    fill("base", "base", { shape: "barrel" }),
    fill("stored", "view", {}),
    fill("virtual", "view", { shape: "round-rectangle", "border-style": "dashed", "background-opacity": 0 }),
    fill("generated", "generated", {}),
    {
      selector: "edge",
      style: {
        label: "data(label)", width: 1.6, "curve-style": "bezier", "target-arrow-shape": "triangle",
        "text-wrap": "wrap", "font-family": family, "font-size": 11,
        "text-background-color": colour("--paper"), "text-background-opacity": 0.9,
        "text-background-padding": 2, "control-point-step-size": 60, "loop-direction": "90deg",
      },
    },
    stroke("positive", "solid"),
    stroke("negative", "dashed"),
    stroke("aggregate", "dotted"),
    {
      selector: "edge.routed",
      style: {
        "curve-style": "unbundled-bezier",
        "control-point-weights": (arc) => arc.scratch("controlPointWeights") || [0.5],
        "control-point-distances": (arc) => arc.scratch("controlPointDistances") || [0],
      },
    },
    { selector: ".faded", style: { opacity: 0.15 } },
    { selector: ".hidden", style: { display: "none" } },
    { selector: "node.chosen", style: { "border-width": 4 } },
    { selector: "edge.chosen", style: { width: 4 } },
  ];

  const cy = cytoscape({
    container: at("graph"),
    elements: [...graph.nodes.map(drawnNode), ...graph.arcs.map(drawnArc)],
    style: style(),
    layout: { name: "preset" },
    minZoom: 0.02,
    maxZoom: 3,
    autounselectify: true,
    boxSelectionEnabled: false,
  });

  // dagre does not know of labels: arcs side by side are kept as far apart as the widest needs. In a
  // large graph nobody reads them before zooming in, and it would become several times as wide.
  // dagre takes some 40 s for 2,000 arcs, so a huge graph only becomes a grid of nodes; what is
  // related to one of them can be laid out by itself.
  const LARGE = 120, HUGE = 600;
  const isHuge = (elements) => elements.edges().length > HUGE;
  const arrange = (elements) => {
    const arcs = elements.edges();
    const widest = Math.max(0, ...arcs.map((arc) => widthOf(arc.data("label"))));
    arcs.removeScratch("controlPointWeights").removeScratch("controlPointDistances");
    elements.layout(isHuge(elements) ? { name: "grid", fit: false } : {
      name: "dagre", rankDir: "BT", nodeSep: 40, rankSep: widest ? 90 : 60, fit: false,
      edgeSep: arcs.length > LARGE ? 12 : Math.max(20, widest * 0.85),
      useDagreEdgeControlPoints: true,
    }).run();
    cy.style(style());
  };
  arrange(cy.elements());

  const fit = () => {
    const shown = cy.elements().not(".hidden");
    cy.fit(shown, 30);
    if (cy.zoom() > 1.25) cy.zoom(1.25);
    if (shown.length) cy.center(shown);
    // What is drawn, for whoever looks at the document and not at the picture.
    Object.assign(at("graph").dataset, { nodes: shown.nodes().length, arcs: shown.edges().length });
  };
  const zoom = (factor) =>
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  at("fit").addEventListener("click", fit);
  at("in").addEventListener("click", () => zoom(1.3));
  at("out").addEventListener("click", () => zoom(1 / 1.3));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(style()));
  window.addEventListener("resize", () => { cy.resize(); fit(); });
  fit();

  // --- the details

  const button = (text, choose) => {
    const made = element("button", text);
    made.type = "button";
    made.addEventListener("click", choose);
    return made;
  };
  const links = (title, names) => {
    if (!names.length) return [];
    const list = element("ul", "", ...names.map((name) => element("li", "", button(name, () => go(name)))));
    list.className = "names";
    return [element("h3", title), list];
  };
  const factList = (facts) => {
    const list = element("dl");
    for (const [label, text] of facts) list.append(element("dt", label), element("dd", text));
    return list;
  };
  const listings = (all) => all.flatMap(({ title, rules }) => [
    element("h3", title),
    ...rules.map(({ text, origin }) =>
      element("pre", text, ...(origin ? [element("small", `\n% ${origin}`)] : []))),
  ]);
  const words = {
    base: "base relation", stored: "stored view", virtual: "virtual view", generated: "generated by a rewrite",
    positive: "positive", negative: "negated", aggregate: "through an aggregate",
  };
  const unique = (names) => [...new Set(names)];

  const showNode = (node) => at("details").replaceChildren(
    element("h2", node.name),
    factList([["kind", words[styleOf(node)]], ...node.facts]),
    ...links("reads", unique(graph.arcs.filter((a) => a.target === node.name).map((a) => a.source))),
    ...links("is read by", unique(graph.arcs.filter((a) => a.source === node.name).map((a) => a.target))),
    ...listings(node.listings),
  );
  const showArc = (arc) => at("details").replaceChildren(
    element("h2", `${arc.source} → ${arc.target}`),
    factList([["kind", words[arc.kind]], ...arc.facts]),
    ...links("between", unique([arc.source, arc.target])),
    ...listings(arc.listings),
  );
  const showHint = () => {
    const hint = element("p", !graph.nodes.length ? "The graph is empty."
      : "Select a node or an arc to see its rules and everything related to it."
      + (isHuge(cy.elements()) ? " This graph is too large for a layout: also check “related only”." : ""));
    hint.className = "hint";
    at("details").replaceChildren(hint);
  };

  // With "related only", what is not related to the chosen node is hidden and the rest laid out anew.
  const hideRest = () => {
    const rest = at("related").checked ? cy.elements(".faded") : cy.collection();
    if (rest.same(cy.elements(".hidden"))) return;
    cy.elements().removeClass("hidden");
    rest.addClass("hidden");
    arrange(cy.elements().not(rest));
    fit();
  };
  at("related").addEventListener("change", hideRest);

  const mark = (chosen, kept) => {
    cy.batch(() => {
      cy.elements().removeClass("faded chosen");
      if (!chosen) return;
      cy.elements().not(kept.union(chosen)).addClass("faded");
      chosen.addClass("chosen");
    });
    hideRest();
    const name = chosen && chosen.isNode() ? chosen.id() : null;
    for (const each of at("names").querySelectorAll("button")) {
      each.setAttribute("aria-current", String(each.textContent === name));
    }
  };
  const chooseNode = (name) => {
    const chosen = cy.getElementById(name);
    mark(chosen, chosen.predecessors().union(chosen.successors()));
    const { x, y } = chosen.renderedPosition();
    if (x < 0 || y < 0 || x > cy.width() || y > cy.height()) cy.center(chosen);
    showNode(nodes.get(name));
  };
  const chooseArc = (drawn) => {
    mark(drawn, drawn.connectedNodes());
    showArc(graph.arcs[drawn.data("number")]);
  };
  const clear = () => { mark(null); showHint(); };

  // The address names the chosen node, so it can be linked to and the way back leads to the last one.
  const go = (name) => { location.hash = name === null ? "" : encodeURIComponent(name); };
  const follow = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* it is taken as it stands */ }
    if (nodes.has(name)) chooseNode(name); else clear();
  };
  const reselect = (name) => (location.hash.slice(1) === encodeURIComponent(name) ? follow() : go(name));
  cy.on("tap", "node", (event) => reselect(event.target.id()));
  cy.on("tap", "edge", (event) => chooseArc(event.target));
  cy.on("tap", (event) => { if (event.target === cy) { go(null); clear(); } });
  window.addEventListener("hashchange", follow);

  // --- search and legend

  const names = [...nodes.keys()].sort();
  for (const name of names) at("names").append(element("li", "", button(name, () => reselect(name))));
  const matching = () => {
    const wanted = at("search").value.trim().toLowerCase();
    return names.filter((name) => name.toLowerCase().includes(wanted));
  };
  at("search").addEventListener("input", () => {
    const found = new Set(matching());
    for (const item of at("names").children) item.hidden = !found.has(item.textContent);
    if (location.hash) go(null);
    clear();
    cy.batch(() => cy.nodes().forEach((node) => { node.toggleClass("faded", !found.has(node.id())); }));
  });
  at("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && matching().length) reselect(matching()[0]);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { go(null); clear(); }
  });

  const used = new Set([...graph.nodes.map(styleOf), ...graph.arcs.map((arc) => arc.kind)]);
  for (const kind of Object.keys(words).filter((each) => used.has(each))) {
    const item = element("li", words[kind]);
    item.className = kind;
    at("legend").append(item);
  }
  follow();
})();
