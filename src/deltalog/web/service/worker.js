// Follows one view beside the page: a commit of a million rows is read and applied here, and the page
// gets no more than the rows it shows. It asks once per frame; the answer is what changed, or nothing.

import { follow } from "./client.js";
import { RowCopy } from "./copy.js";

const copy = new RowCopy();
let state = "connecting", failure = null, answered = "";

const open = async ({ view, bindings, token }) => {
  try {
    await follow({
      view, bindings, token,
      onMessages: (messages) => copy.take(messages),
      onState: (text) => { state = text; },
    });
  } catch (error) {
    state = "failed";
    failure = { status: error.status, message: error.message };
  }
};

const answer = ({ start, count, filter, logCount, isPaused }) => {
  copy.sweep(Date.now());
  const asked = JSON.stringify([start, count, filter, logCount, isPaused, copy.revision, state]);
  if (asked === answered) return { kind: "same" };
  answered = asked;
  const figures = {
    kind: "frame", state, failure, total: copy.rows.size, changes: copy.changes,
    version: copy.version, isReading: copy.staged !== null,
  };
  if (isPaused) return figures;
  return { ...figures, start, ...copy.window(start, count, filter), log: copy.recent(logCount) };
};

self.onmessage = ({ data }) => {
  if (data.kind === "open") open(data);
  else self.postMessage(answer(data));
};
