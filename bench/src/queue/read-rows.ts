/** Reads every row of a SQLite queue and drops it: what a start of the queue is measured against. Prints how many. */
import { DatabaseSync } from 'node:sqlite'

const PAGE_ROWS = 2_000

const database = new DatabaseSync(process.argv[2] ?? '')
const page = database.prepare('SELECT * FROM jobs WHERE seq > ? ORDER BY seq LIMIT ?')
let rows = 0
for (let after = 0, isLast = false; !isLast; ) {
  const read = page.all(after, PAGE_ROWS)
  rows += read.length
  after = Number(read.at(-1)?.['seq'])
  isLast = read.length < PAGE_ROWS
}
database.close()
process.stdout.write(`${rows}\n`)
