/** Jobs of a SQLite queue that share a row, beside a model of what is stored. */
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { topicConfig } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createJob, createTopicState, FLAG, type Job, STATE, type Topic } from './job.ts'
import type { Journal } from './journal.ts'
import { sqliteJournal } from './sqlite-journal.ts'
import type { Change } from './state.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const CREATED_AT = Date.UTC(2026, 0, 1)
/** Longer than any test. */
const NEVER_MS = 600_000

let folder: string
let journal: Journal | undefined
const file = () => join(folder, 'queue.db')

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-packs-'))
})

afterEach(async () => {
  await closed()
  rmSync(folder, { recursive: true })
})

async function opened(sparseMs = NEVER_MS): Promise<Journal> {
  const lost = (why: Error) => {
    throw why
  }
  const events = { onLost: lost, onStandby: () => undefined, signal: new AbortController().signal }
  journal = await sqliteJournal({ file: file(), partition: 0, partitions: 1, isSynced: false, sparseMs })(events)
  return journal
}

async function closed(): Promise<void> {
  await journal?.close()
  journal = undefined
}

const topicOf = (name: string, number: number): Topic =>
  createTopicState(name, number, topicConfig.parse({}), CREATED_AT, Math.random)
const put = (job: Job): Change => ({ kind: 'put', job })
const done = ({ seq }: Job): Change => ({ kind: 'done', seq })
const stored = (topic: Topic): Change => ({ kind: 'topic', topic, config: topic.config, redrive: undefined })

function jobOf(topic: Topic, seq: number, data: string | undefined = `{"n":${seq}}`, runAt = 0): Job {
  const isWide = data !== undefined && Buffer.byteLength(data) !== data.length
  const fields = {
    id: `job-${seq}-ü`,
    priority: seq % 10,
    flags: FLAG.json | (isWide ? FLAG.wide : 0),
    maxAttempts: seq % 3,
    ackDeadlineMs: 1_000 + seq,
    runAt,
    data,
    bytes: data === undefined ? 0 : Buffer.byteLength(data),
  }
  return createJob(topic, fields, seq, STATE.ready, CREATED_AT + (seq % 7) - 3)
}

/** What a journal keeps of a job. */
const kept = (job: Job) => ({
  seq: job.seq,
  id: job.id,
  topicNumber: job.topic.number,
  priority: job.priority,
  failures: job.failures,
  maxAttempts: job.maxAttempts,
  ackDeadlineMs: job.ackDeadlineMs,
  createdAt: job.createdAt,
  runAt: job.runAt,
  data: job.data,
  bytes: job.bytes,
})

async function loaded(from: Journal, topics: ReadonlySet<number>) {
  const jobs: ReturnType<typeof kept>[] = []
  for await (const batch of from.load())
    for (const job of batch.flatMap((each) => (each.kind === 'jobs' ? each.jobs : []))) {
      if (!topics.has(job.topicNumber)) continue
      const { seq, id, topicNumber, priority, failures, maxAttempts, ackDeadlineMs, createdAt, runAt, data } = job
      const { bytes } = job
      jobs.push({ seq, id, topicNumber, priority, failures, maxAttempts, ackDeadlineMs, createdAt, runAt, data, bytes })
    }
  return jobs
}

/** Rows of the closed file. */
function count(table: 'jobs' | 'packs' | 'filed_packs' | 'pack_marks'): number {
  const database = new DatabaseSync(file(), { readOnly: true })
  const row = database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }
  database.close()
  return row.n
}

it('keeps exactly what random groups leave, however they are packed', { timeout: 240_000 }, async () => {
  const random = createRandom(SEED)
  // Of some groups all jobs are large, so that they fill several files.
  const large = `"${'x'.repeat(30_000)}"`
  const payloads = [undefined, '{"name":"Grüße 🎉"}', `"${'x'.repeat(3_000)}"`, `"${'y'.repeat(90_000)}"`]
  const topics = new Map(['orders', 'mail', 'prices'].map((name, n) => [n + 1, topicOf(name, n + 1)]))
  const jobs = new Map<number, Job>()
  let seq = 1
  let running = await opened(0)
  await running.write([...topics.values()].map(stored))
  const some = (share: number) => [...jobs.values()].filter(() => random.below(100) < share)
  for (let step = 0; step < 60; step++) {
    const changes: Change[] = []
    const gone = random.below(40) === 0 && topics.size > 1 ? [...topics.values()][0] : undefined
    if (gone !== undefined) {
      topics.delete(gone.number)
      for (const job of jobs.values()) if (job.topic === gone) jobs.delete(job.seq)
      changes.push({ kind: 'topicGone', topicNumber: gone.number })
    }
    for (const job of some(random.below(4))) {
      const before = job.seq
      job.failures++
      // A job that is not delayed keeps no time.
      job.runAt = 0
      // As a redrive does: another number, with nothing counted.
      if (random.below(4) !== 0) changes.push({ kind: 'update', seq: before, job })
      else {
        jobs.delete(before)
        job.failures = 0
        job.seq = seq++
        jobs.set(job.seq, job)
        changes.push({ kind: 'redrive', seq: before, job })
      }
    }
    for (const job of some([0, 5, 60, 100][random.below(4)] ?? 0)) {
      jobs.delete(job.seq)
      changes.push(done(job))
    }
    const list = [...topics.values()]
    const isMixed = random.below(2) === 0
    const isLarge = random.below(6) === 0
    let topic = list[random.below(list.length)] as Topic
    for (let n = [0, 1, 12, 400][random.below(4)] ?? 0; n > 0; n--) {
      if (isMixed) topic = list[random.below(list.length)] as Topic
      const usual = isLarge ? large : `{"n":${seq}}`
      const payload = random.below(10) === 0 ? payloads[random.below(payloads.length)] : usual
      const job = jobOf(topic, seq++, payload, random.below(30) === 0 ? CREATED_AT + 1_000 : 0)
      jobs.set(job.seq, job)
      changes.push(put(job))
    }
    await running.write(changes)
    if (random.below(8) !== 0) continue
    await closed()
    running = await opened([0, NEVER_MS][random.below(2)])
    const expected = [...jobs.values()].map(kept).sort((a, b) => a.seq - b.seq)
    expect(await loaded(running, new Set(topics.keys())), `VACANCY_SEED=${SEED}, step ${step}`).toEqual(expected)
  }
})

it('needs a row for a hundred neighbours, and none when they are done', async () => {
  const orders = topicOf('orders', 1)
  const jobs = Array.from({ length: 100 }, (_, n) => jobOf(orders, n + 1))
  await (await opened()).write([stored(orders), ...jobs.map(put)])
  await closed()
  expect([count('jobs'), count('packs'), count('pack_marks')]).toEqual([0, 1, 0])

  await (await opened()).write(jobs.slice(0, 40).map(done))
  await closed()
  expect([count('jobs'), count('packs'), count('pack_marks')]).toEqual([0, 1, 1])

  await (await opened()).write(jobs.slice(40).map(done))
  await closed()
  expect([count('jobs'), count('packs'), count('pack_marks')]).toEqual([0, 0, 0])
})

it('makes rows of what is left when most of a pack is done, also of one that an earlier process left', async () => {
  const orders = topicOf('orders', 1)
  const jobs = Array.from({ length: 100 }, (_, n) => jobOf(orders, n + 1))
  const left = jobs.filter(({ seq }) => seq % 10 === 0)
  await (await opened()).write([stored(orders), ...jobs.map(put)])
  await journal?.write(jobs.filter(({ seq }) => seq % 10 !== 0).map(done))
  await closed()
  expect([count('jobs'), count('packs')]).toEqual([0, 1])

  await until('the pack is unpacked', async () => {
    await (await opened(0)).sizes()
    // The file can be read when it is closed.
    await closed()
    return count('packs') === 0
  })
  expect([count('jobs'), count('pack_marks')]).toEqual([left.length, 0])
  expect(await loaded(await opened(), new Set([1]))).toEqual(left.map(kept))
})

it('reads a file of the version before packs, and adds them', async () => {
  const orders = topicOf('orders', 1)
  const old = [1, 2, 3].map((seq) => jobOf(orders, seq))
  await (await opened()).write([stored(orders), ...old.map(put)])
  await closed()
  // The tables were the same, without those of packs.
  const database = new DatabaseSync(file())
  database.exec('DROP TABLE packs; DROP TABLE filed_packs; DROP TABLE pack_marks; UPDATE meta SET version = 1')
  database.close()

  const added = Array.from({ length: 20 }, (_, n) => jobOf(orders, n + 4))
  await (await opened()).write([done(old[1] as Job), ...added.map(put)])
  await closed()

  expect([count('jobs'), count('packs')]).toEqual([2, 1])
  const left = [old[0], old[2], ...added] as Job[]
  expect(await loaded(await opened(), new Set([1]))).toEqual(left.map(kept))
})

it('is refused by name when the content of a pack does not add up', async () => {
  const orders = topicOf('orders', 1)
  const jobs = Array.from({ length: 20 }, (_, n) => jobOf(orders, n + 1))
  await (await opened()).write([stored(orders), ...jobs.map(put)])
  await closed()
  const database = new DatabaseSync(file())
  const whole = database.prepare('SELECT data FROM packs').get()?.['data'] as Uint8Array
  const spoiled: readonly Uint8Array[] = [
    whole.subarray(0, whole.length - 1),
    whole.subarray(0, 3),
    new Uint8Array(0),
    Uint8Array.from([...whole, 0]),
    Uint8Array.from(whole, (byte, at) => (at === 3 ? 0x7f : byte)),
    Uint8Array.from(whole, (byte, at) => (at === 4 + 27 ? 0xff : byte)),
  ]
  database.close()
  for (const data of spoiled) {
    const opening = new DatabaseSync(file())
    opening.prepare('UPDATE packs SET data = ?').run(data)
    opening.close()
    await expect(loaded(await opened(), new Set([1]))).rejects.toThrow(
      /queue\.db cannot be used: damaged: the jobs from number 1 cannot be read\. Restore a backup over it/,
    )
    await closed()
  }
})

/** Names of the pack files. */
const packFiles = () => readdirSync(folder).filter((name) => /^queue[.]db-packs-[0-9a-f]{8}-[0-9]+$/.test(name))
const inFolder = (name: string) => join(folder, name)

/** Neighbours of about 10 KB each: 128 of them are a pack of 1.3 MB. */
const largeJobs = (topic: Topic, from: number, count: number) =>
  Array.from({ length: count }, (_, n) => jobOf(topic, from + n, `"${String(from + n).padEnd(10_000, '.')}"`))

it('writes a large group to a file that only its owner reads, and a small one to none', async () => {
  const orders = topicOf('orders', 1)
  const small = Array.from({ length: 100 }, (_, n) => jobOf(orders, n + 1))
  await (await opened()).write([stored(orders), ...small.map(put)])
  expect(packFiles()).toEqual([])

  const large = largeJobs(orders, 101, 200)
  await journal?.write(large.map(put))
  await closed()

  const [name = '', ...others] = packFiles()
  expect(others).toEqual([])
  expect(statSync(inFolder(name)).mode & 0o777).toBe(0o600)
  expect(statSync(inFolder(name)).size).toBeGreaterThan(2_000_000)
  expect(statSync(file()).size).toBeLessThan(1_000_000)
  expect([count('packs'), count('filed_packs')]).toEqual([1, 8])
  expect(await loaded(await opened(), new Set([1]))).toEqual([...small, ...large].map(kept))
})

it('writes a file again when its packs are gone, and keeps no more than two without packs', async () => {
  const orders = topicOf('orders', 1)
  const running = await opened()
  await running.write([stored(orders)])
  let seq = 1
  for (let round = 0; round < 4; round++) {
    // Three files of 16 MiB.
    const written: Job[] = []
    for (let n = 0; n < 20; n++) {
      const group = largeJobs(orders, seq, 200)
      seq += group.length
      await running.write(group.map(put))
      written.push(...group)
    }
    await running.write(written.map(done))
    expect(packFiles().length).toBeLessThanOrEqual(3)
    expect((await running.sizes()).bytes - (await running.sizes()).freeBytes).toBeLessThan(1_000_000)
  }
  await closed()

  // A start deletes those without packs.
  expect(await loaded(await opened(), new Set([1]))).toEqual([])
  expect(packFiles()).toEqual([])
})

it('moves the rest of a file into rows when little of it is left', { timeout: 240_000 }, async () => {
  const orders = topicOf('orders', 1)
  const jobs = largeJobs(orders, 1, 2_400)
  const running = await opened(0)
  await running.write([stored(orders)])
  for (let n = 0; n < jobs.length; n += 200) await running.write(jobs.slice(n, n + 200).map(put))
  expect(packFiles().length).toBe(2)

  const { bytes } = await running.sizes()

  // Of the first file little is left.
  const left = jobs.filter(({ seq }) => seq > 1_400 || (seq > 200 && seq <= 225))
  await running.write(jobs.filter((job) => !left.includes(job)).map(done))
  await until('the first file has no packs', async () => (await running.sizes()).bytes < bytes - 12_000_000)
  await closed()

  expect(await loaded(await opened(), new Set([1]))).toEqual(left.map(kept))
  expect(packFiles()).toEqual([expect.stringMatching(/-2$/)])
})

it('is refused by name when a pack file is missing, cut or changed at any byte, and nothing is deleted', async () => {
  const orders = topicOf('orders', 1)
  await (await opened()).write([stored(orders), ...largeJobs(orders, 1, 200).map(put)])
  await closed()
  const [name = ''] = packFiles()
  const whole = readFileSync(inFolder(name))
  writeFileSync(inFolder(`${name.slice(0, -1)}9`), 'a file that no row names')
  rmSync(inFolder(name))

  await expect(opened()).rejects.toThrow(`queue.db cannot be used: damaged: its file ${name} is missing. Restore`)
  expect(packFiles()).toEqual([`${name.slice(0, -1)}9`])

  const random = createRandom(SEED)
  for (let round = 0; round < 6; round++) {
    const at = random.below(whole.length)
    const spoiled = round === 0 ? whole.subarray(0, whole.length - 1) : Buffer.from(whole)
    if (round > 0) spoiled[at] = (spoiled[at] as number) ^ (1 << random.below(8))
    writeFileSync(inFolder(name), spoiled)
    await expect(loaded(await opened(), new Set([1])), `VACANCY_SEED=${SEED}, byte ${at}`).rejects.toThrow(
      `damaged: ${name} has other bytes at`,
    )
    await closed()
  }
  expect(packFiles(), 'what no row names is deleted').toEqual([name])
})

it('ignores what a killed process wrote behind the last pack', async () => {
  const orders = topicOf('orders', 1)
  const first = largeJobs(orders, 1, 100)
  await (await opened()).write([stored(orders), ...first.map(put)])
  await closed()
  const [name = ''] = packFiles()
  writeFileSync(inFolder(name), Buffer.alloc(700_000, 0xab), { flag: 'a' })

  const second = largeJobs(orders, 101, 100)
  await (await opened()).write(second.map(put))
  await closed()

  expect(packFiles()).toEqual([name])
  expect(await loaded(await opened(), new Set([1]))).toEqual([...first, ...second].map(kept))
})

it('keeps the pack files of another queue that was in its place', async () => {
  const orders = topicOf('orders', 1)
  const jobs = largeJobs(orders, 1, 100)
  await (await opened()).write([stored(orders), ...jobs.map(put)])
  await closed()
  const names = packFiles()
  renameSync(file(), inFolder('aside.db'))

  // An empty queue, as after a restart without its file.
  await (await opened()).write([stored(topicOf('mail', 1))])
  await closed()
  expect(packFiles()).toEqual(names)

  renameSync(inFolder('aside.db'), file())
  expect(await loaded(await opened(), new Set([1]))).toEqual(jobs.map(kept))
})

it('has all packs in one file when it is backed up', async () => {
  const orders = topicOf('orders', 1)
  const jobs = largeJobs(orders, 1, 300)
  await (await opened()).write([stored(orders), ...jobs.map(put)])
  await journal?.write(jobs.slice(0, 10).map(done))
  await journal?.backup?.(inFolder('copy.db'))
  await closed()
  for (const name of packFiles()) rmSync(inFolder(name))
  renameSync(inFolder('copy.db'), file())

  expect(await loaded(await opened(), new Set([1]))).toEqual(jobs.slice(10).map(kept))
  await closed()
  expect([count('packs') > 0, count('filed_packs')]).toEqual([true, 0])
})
