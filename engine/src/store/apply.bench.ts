/**
 * CPU time per applied command, on one thread: growing, keyed, plain and repeated writes.
 *
 *   node engine/src/store/apply.bench.ts                              this checkout, once
 *   node engine/src/store/apply.bench.ts --against DIR [--runs 9]     alternated with another checkout; medians and ratios
 */

import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { CommandKind } from './command.ts'

const { values } = parseArgs({
  options: { against: { type: 'string' }, runs: { type: 'string', default: '9' }, root: { type: 'string' } },
})

const HERE = resolve(import.meta.dirname, '../../..')
const DAY = 20_777
const DAY_MS = 86_400_000
const PROPERTIES = 20_000
const NIGHTS = 20
const COMMANDS = 540_000
const WARM_UP = 60_000
const MEMORY_BYTES = 1 << 30

type Figures = { readonly [what: string]: number }

/** Microseconds of user CPU time per command, of the code in a checkout. */
async function measure(root: string): Promise<Figures> {
  const from = (file: string) => import(join(root, 'engine/src', file))
  const { nodeOver } = (await from('testing/node-in-memory.ts')) as typeof import('../testing/node-in-memory.ts')
  const { createStore, publish } = (await from('store/store.ts')) as typeof import('./store.ts')
  const { applyCommand } = (await from('store/apply.ts')) as typeof import('./apply.ts')
  const command = (await from('store/command.ts')) as typeof import('./command.ts')
  const { KIND, writeBytes, writeF64, writeName, writeU8, writeU32 } = command
  const store = createStore({
    memoryBytes: MEMORY_BYTES,
    readers: 2,
    scratchBytes: 16 << 20,
    sessionBytesMax: 32 << 20,
  })
  const node = nodeOver(store, DAY)
  const writer = command.createCommandWriter()
  const id = new Uint8Array(16)
  const idView = new DataView(id.buffer)
  const names = new Map<string, Uint8Array>()
  let index = 0
  const name = (text: string) => {
    const bytes = names.get(text) ?? new TextEncoder().encode(text)
    names.set(text, bytes)
    writeName(writer, bytes, 0, bytes.length)
  }
  const property = (n: number) => {
    idView.setUint32(0, Math.imul(n, 2_654_435_761) >>> 0)
    idView.setUint32(12, n)
    writeBytes(writer, id, 0, 16)
  }
  const run = (kind: CommandKind, body: () => void, key?: Uint8Array) => {
    writer.at = 0
    command.beginCommand(writer, kind, key)
    body()
    command.stampCommand(writer.view, 0, DAY * DAY_MS + index, DAY)
    index++
    const { code } = applyCommand(node.context, index, writer.bytes, 0, writer.at)
    if (code !== 0) throw new Error(`outcome ${code} of command ${kind}`)
    if (index % 256 === 0) publish(store, index)
  }
  const setProperty = (n: number) => {
    property(n)
    writeU8(writer, 3)
    writeF64(writer, 1)
    writeF64(writer, 2)
    for (const text of [`s${n % 10}`, `a${n % 40}`, 't', 'c']) name(text)
    writeU8(writer, 3)
    for (const text of ['x', 'y', 'z']) name(text)
  }
  const setPackage = (n: number, night: number) => {
    property(n)
    writeU32(writer, DAY + night)
    writeU8(writer, 7)
    writeU8(writer, 5)
    writeU32(writer, 100 + night)
    writeU32(writer, 3)
    name(`r${n % 3}`)
  }
  const setAvailability = (n: number, night: number) => {
    property(n)
    writeU32(writer, DAY + night)
    writeU8(writer, 4)
    name(`r${n % 3}`)
  }
  const timed = (count: number, warmUp: number, act: (n: number) => void): number => {
    for (let n = 0; n < warmUp; n++) act(n)
    const before = process.cpuUsage()
    for (let n = warmUp; n < warmUp + count; n++) act(n)
    return process.cpuUsage(before).user / count
  }
  const some = (n: number) => 1 + ((Math.imul(n, 7919) >>> 0) % PROPERTIES)
  const key = new Uint8Array(24)
  const keyView = new DataView(key.buffer)

  // Versions before the feature levels do not know these commands.
  if ('featureLevel' in KIND) {
    run(KIND.featureLevel, () => writeU32(writer, 1))
    run(KIND.memoryBudget, () => writeF64(writer, MEMORY_BYTES * 0.85))
  }
  const growing = timed(PROPERTIES, 0, (n) => {
    run(KIND.setProperty, () => setProperty(n + 1))
    for (let night = 0; night < NIGHTS; night++) run(KIND.setPackage, () => setPackage(n + 1, night))
  })
  const plain = timed(COMMANDS, WARM_UP, (n) => {
    run(KIND.setAvailability, () => setAvailability(some(n), n % NIGHTS))
  })
  const keyed = timed(COMMANDS, WARM_UP, (n) => {
    keyView.setUint32(0, n % 500)
    keyView.setBigUint64(16, BigInt(Math.floor(n / 500) + 1), true)
    run(KIND.setAvailability, () => setAvailability(some(n), n % NIGHTS), key)
  })
  const updating = timed(COMMANDS, WARM_UP, (n) => run(KIND.setPackage, () => setPackage(some(n), n % NIGHTS)))
  return { growing: growing / (NIGHTS + 1), plain, keyed, updating }
}

function measureApart(root: string): Figures {
  const args = [import.meta.filename, '--root', root]
  const { stdout, status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`the run of ${root} failed: ${stderr}`)
  return JSON.parse(stdout) as Figures
}

const median = (list: readonly number[]) => [...list].sort((a, b) => a - b)[list.length >> 1]

function compare(against: string, runs: number): void {
  const of = { base: [] as Figures[], new: [] as Figures[] }
  for (let n = 0; n < runs; n++) {
    of.base.push(measureApart(against))
    of.new.push(measureApart(HERE))
    process.stderr.write(`${n + 1} of ${runs}\n`)
  }
  const rows = Object.keys(of.new[0] as Figures).map((what) => {
    const list = (which: 'base' | 'new') => of[which].map((figures) => figures[what])
    const [base, now] = [median(list('base')), median(list('new'))]
    const spread = (Math.max(...list('base')) - Math.min(...list('base'))) / base
    return { what, baseUs: base, newUs: now, ratio: now / base, spreadOfBase: spread }
  })
  process.stdout.write(`${JSON.stringify({ runs, rows }, undefined, 2)}\n`)
}

if (values.root !== undefined) process.stdout.write(JSON.stringify(await measure(values.root)))
else if (values.against !== undefined) compare(resolve(values.against), Number(values.runs))
else process.stdout.write(`${JSON.stringify(await measure(HERE), undefined, 2)}\n`)
