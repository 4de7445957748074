// A small client of the service, for the page and its worker: requests, and following a view.
// Streams are read by `fetch`, since EventSource cannot send a token.
//
//   follow({ view: "path", onMessages(messages, control) {…}, onState(text) {…}, signal })
//
// It resumes behind the last offset after a lost connection, waits longer each time, and reads
// everything again when the service cannot go on there (410).

export class ServiceError extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `status ${status}`);
    this.status = status;
    this.problems = document.problems || [];
    this.document = document;
  }
}

const headersFor = (token) => (token ? { Authorization: `Bearer ${token}` } : {});

const failure = async (response) => {
  let document = {};
  try { document = await response.json(); } catch { /* no JSON: the status has to do */ }
  return new ServiceError(response.status, document);
};

export const request = async (path, { method = "GET", body, token, headers = {}, signal } = {}) => {
  const sent = { ...headersFor(token), ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, signal, headers: sent, cache: "no-store",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw await failure(response);
  return response.json();
};

// --- server-sent events

// Lines of a stream. A commit of a million rows is one very long line, so pieces of it are kept in a
// list and joined once.
async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    let start = 0;
    for (let end = value.indexOf("\n"); end >= 0; end = value.indexOf("\n", start)) {
      pieces.push(value.slice(start, end));
      yield pieces.join("").replace(/\r$/, "");
      pieces = [];
      start = end + 1;
    }
    if (start < value.length) pieces.push(value.slice(start));
  }
}

export async function* serverSentEvents(stream) {
  let kind = "message", data = [];
  for await (const line of lines(stream)) {
    if (line === "") {
      if (data.length) yield { kind, data: data.join("\n") };
      kind = "message";
      data = [];
    } else if (line.startsWith("event:")) {
      kind = line.slice(6).trim();
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}

// --- following

const pause = (milliseconds, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});

const addressOf = (view, bindings, offset, cursor) => {
  const query = new URLSearchParams({ offset, live: "sse" });
  for (const [column, value] of Object.entries(bindings || {})) query.set(`${view}.${column}`, value);
  if (cursor) query.set("cursor", cursor);
  return `/v1/views/${encodeURIComponent(view)}/stream?${query}`;
};

export const follow = async ({ view, bindings, token, signal, onMessages, onState }) => {
  let offset = "-1", cursor = "", failures = 0;
  while (!signal?.aborted) {
    try {
      const response = await fetch(addressOf(view, bindings, offset, cursor), {
        signal, cache: "no-store", headers: { ...headersFor(token), Accept: "text/event-stream" },
      });
      if (response.status === 410) { offset = "-1"; continue; }
      if (!response.ok) throw await failure(response);
      onState("live");
      for await (const { kind, data } of serverSentEvents(response.body)) {
        if (kind === "data") onMessages(JSON.parse(data));
        if (kind !== "control") continue;
        const control = JSON.parse(data);
        offset = control.streamNextOffset;
        cursor = control.streamCursor || cursor;
        failures = 0;
      }
      await pause(20, signal);
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ServiceError && error.status < 500 && error.status !== 429) throw error;
      failures += 1;
      onState("reconnecting");
      await pause(Math.min(100 * 2 ** failures, 10_000) * (0.5 + Math.random() / 2), signal);
    }
  }
};
