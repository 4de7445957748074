// The copy of a view that the page shows, held by the worker: rows by key, newest first, in an order
// in which any window of them can be cut out. A row that is deleted stays for a moment, marked.

const SHOWN_MILLISECONDS = 2_500;
const MARKED_MAX = 2_000; // of a larger commit deleted rows vanish at once
const LOG_MAX = 200;

export class RowCopy {
  constructor() {
    this.rows = new Map();
    this.base = []; // rows of the snapshot, in its order
    this.fresh = []; // rows inserted since, shown before them, the newest first
    this.log = [];
    this.revision = 0;
    this.changes = 0;
    this.version = null;
    this.columns = [];
    this.dying = 0;
    this.staged = null;
    this.found = { filter: "", revision: -1, entries: [] };
  }

  take(messages) {
    const isLarge = messages.length > MARKED_MAX;
    const now = Date.now();
    for (const message of messages) {
      const { control } = message.headers;
      if (control === "reset") this.staged = new Map();
      else if (control === "snapshot-end") this.#replace(message.headers.offset);
      else if (control) continue;
      else if (this.staged) this.staged.set(message.key, this.#entry(message, "", 0));
      else this.#change(message, isLarge, now);
    }
    this.revision += 1;
  }

  #entry(message, mark, at) {
    if (!this.columns.length) this.columns = Object.keys(message.value);
    return { key: message.key, cells: Object.values(message.value), mark, at };
  }

  #replace() {
    this.rows = this.staged;
    this.base = [...this.staged.values()];
    this.fresh = [];
    this.staged = null;
    this.dying = 0;
  }

  #change(message, isLarge, now) {
    const { operation, txid } = message.headers;
    this.version = Number(txid);
    if (operation !== "insert") {
      const entry = this.rows.get(message.key);
      if (entry) {
        this.rows.delete(message.key);
        Object.assign(entry, { mark: "-", at: isLarge ? 0 : now, version: this.version });
        this.dying += 1;
        this.#note("-", entry);
      }
    }
    if (operation !== "delete") {
      const entry = this.#entry(message, "+", now);
      entry.version = this.version;
      this.rows.set(message.key, entry);
      this.fresh.push(entry);
      this.#note("+", entry);
    }
  }

  #note(sign, entry) {
    this.changes += 1;
    this.log.push({ sign, cells: entry.cells, version: this.version, number: this.changes });
    if (this.log.length > 4 * LOG_MAX) this.log.splice(0, this.log.length - LOG_MAX);
  }

  // Forget rows that were shown as deleted for long enough.
  sweep(now) {
    if (!this.dying) return;
    const isKept = (entry) => entry.mark !== "-" || now - entry.at < SHOWN_MILLISECONDS;
    const before = this.base.length + this.fresh.length;
    this.base = this.base.filter(isKept);
    this.fresh = this.fresh.filter(isKept);
    const removed = before - this.base.length - this.fresh.length;
    this.dying -= removed;
    if (removed) this.revision += 1;
  }

  #matching(filter) {
    const { found } = this;
    if (found.filter === filter && found.revision === this.revision) return found.entries;
    const wanted = filter.toLowerCase();
    const fits = (entry) => entry.cells.some((cell) => String(cell).toLowerCase().includes(wanted));
    const entries = [...this.fresh.filter(fits).reverse(), ...this.base.filter(fits)];
    this.found = { filter, revision: this.revision, entries };
    return entries;
  }

  window(start, count, filter) {
    if (filter) {
      const entries = this.#matching(filter);
      return { length: entries.length, rows: entries.slice(start, start + count) };
    }
    const length = this.fresh.length + this.base.length, rows = [];
    for (let index = start; index < Math.min(start + count, length); index += 1) {
      const fromEnd = this.fresh.length - 1 - index;
      rows.push(fromEnd >= 0 ? this.fresh[fromEnd] : this.base[index - this.fresh.length]);
    }
    return { length, rows };
  }

  recent(count) { return this.log.slice(-Math.min(count, LOG_MAX)).reverse(); }
}
