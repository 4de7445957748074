// Follow a stream with the published clients of Durable Streams, and keep offset and copy in a file.
//
//   node follow.mjs URL FILE long-poll|sse
//
// Every batch is applied and then written down, with the offset behind it, in one rename. So a copy
// that was killed goes on where it was. Each line of output is an offset that was written down.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { stream } from "@durable-streams/client"
import { MaterializedState, isChangeEvent } from "@durable-streams/state"

const [url, file, live] = process.argv.slice(2)
const state = new MaterializedState()
let offset = "-1"
if (existsSync(file)) {
  const kept = JSON.parse(readFileSync(file, "utf-8"))
  offset = kept.offset
  for (const event of kept.events) state.apply(event)
}

function write(next) {
  const events = []
  for (const type of state.types)
    for (const [key, value] of state.getType(type))
      events.push({ type, key, value, headers: { operation: "insert" } })
  writeFileSync(`${file}.part`, JSON.stringify({ offset: next, events }))
  renameSync(`${file}.part`, file)
  console.log(next)
}

async function follow() {
  const response = await stream({ url, offset, live, json: true, warnOnHttp: false })
  response.subscribeJson(async (batch) => {
    for (const event of batch.items) {
      if (isChangeEvent(event)) state.apply(event)
      else if (event.headers.control === "reset") state.clear()
    }
    offset = batch.offset
    write(offset)
  })
  await response.closed
}

// A connection that breaks in the middle of events ends the client: it goes on behind the last batch.
for (let attempts = 0; attempts < 1000; attempts++) {
  await follow().catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, 100))
}
