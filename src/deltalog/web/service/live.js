// A view, live: the worker that follows it, and what it shows now. One question per animation frame.

const { useEffect, useRef, useState } = window.htmPreact;

const NOTHING = { state: "connecting", total: 0, changes: 0, rows: [], start: 0, length: 0, log: [] };

export const useLiveView = (view, bindings, token, wanted) => {
  const [frame, setFrame] = useState(NOTHING);
  const asked = useRef(wanted);
  asked.current = wanted;
  const selection = JSON.stringify(bindings);
  useEffect(() => {
    if (!view) return undefined;
    const worker = new Worker("/page/worker.js", { type: "module" });
    let isWaiting = false, isOver = false, seen = 0;
    worker.onmessage = ({ data }) => {
      isWaiting = false;
      if (isOver || data.kind === "same") return;
      if (!asked.current.isPaused) seen = data.changes;
      setFrame((before) => ({ ...before, ...data, skipped: data.changes - seen }));
    };
    worker.postMessage({ kind: "open", view, bindings: JSON.parse(selection), token });
    const ask = () => {
      if (isOver) return;
      if (!isWaiting) {
        isWaiting = true;
        worker.postMessage({ kind: "window", ...asked.current });
      }
      requestAnimationFrame(ask);
    };
    setFrame(NOTHING);
    requestAnimationFrame(ask);
    return () => { isOver = true; worker.terminate(); };
  }, [view, selection, token]);
  return frame;
};
