import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createRandom, tries } from '@vacancy/testkit/random'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { base64, startTestQueue, subscribe, type TestQueue } from './testing/queue.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

let folder: string
let queue: TestQueue | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-journal-'))
  writeFileSync(
    join(folder, 'auth.yml'),
    'tokens:\n  - { token: admin_2024, role: admin }\n  - { token: consumer-token, role: consumer }\n',
  )
})

afterEach(async () => {
  await queue?.program.stop()
  queue = undefined
  rmSync(folder, { recursive: true, force: true })
})

const file = () => join(folder, 'data', 'queue.db')
const submit = (to: TestQueue, ids: readonly string[], bytes = 10) =>
  to.call('POST', '/producer/jobs', {
    topic: 'orders',
    jobs: ids.map((id) => ({ id, data: base64('x'.repeat(bytes)) })),
  })

async function started(): Promise<TestQueue> {
  queue = await startTestQueue({}, folder)
  await queue.call('POST', '/producer/topic', { topic: 'orders' })
  return queue
}

async function stopped(): Promise<void> {
  await queue?.program.stop()
  queue = undefined
}

describe('the file of a queue', () => {
  it('is used by one process at a time, and the second names what to do', async () => {
    await started()
    await expect(startTestQueue({}, folder)).rejects.toThrow(/queue\.db cannot be used: database is locked.*--data-dir/)
    expect((await submit(queue as TestQueue, ['a'])).status).toBe(200)
  })

  it('is refused by name when it is damaged, of another version, or has other partitions', async () => {
    await submit(
      await started(),
      Array.from({ length: 200 }, (_, n) => `job-${n}`),
      500,
    )
    await stopped()
    const whole = readFileSync(file())
    await expect(startTestQueue({ partitions: 2 }, folder)).rejects.toThrow(
      'it has 1 partitions, the setting partitions is 2',
    )
    const database = new DatabaseSync(file())
    database.exec('UPDATE meta SET version = 7')
    database.close()
    await expect(startTestQueue({}, folder)).rejects.toThrow('it has version 7, this program reads version 3')
    writeFileSync(file(), 'not a database at all, but a text that is long enough to look like one'.repeat(10))
    await expect(startTestQueue({}, folder)).rejects.toThrow(/queue\.db cannot be used: .*\. Restore a backup over it/s)
    const cut = Buffer.from(whole)
    cut.fill(0xff, 4_096 * 3, 4_096 * 6)
    writeFileSync(file(), cut)
    await expect(startTestQueue({}, folder)).rejects.toThrow(/queue\.db cannot be used: .*\. Restore a backup over it/s)
  })

  it('loses nothing that was committed before its log was cut or spoiled at any byte', {
    timeout: 240_000,
  }, async () => {
    const random = createRandom(SEED)
    const running = await started()
    const sizes: number[] = []
    const log = `${file()}-wal`
    for (let n = 0; n < 20; n++) {
      expect((await submit(running, [`job-${n}`], 300)).status).toBe(200)
      sizes.push(statSync(log).size)
    }
    // A copy of the files as a crash leaves them.
    const [main, wal] = [readFileSync(file()), readFileSync(log)]
    await stopped()
    for (let round = 0; round < tries(12); round++) {
      writeFileSync(file(), main)
      const at = random.below(wal.length)
      const spoiled = Buffer.from(wal)
      if (round % 2 === 0) spoiled[at] = (spoiled[at] as number) ^ 0x55
      writeFileSync(log, spoiled)
      if (round % 2 === 1) truncateSync(log, at)
      queue = await startTestQueue({}, folder)
      const { body, status } = await queue.call('GET', '/api/v1/queue/topics/orders/jobs?limit=500')
      // The topic itself may be behind the cut.
      const ids: string[] = status === 404 ? [] : body.jobs.map(({ id }: { id: string }) => id)
      const whole = sizes.filter((size) => size <= at).length
      const where = `VACANCY_SEED=${SEED}, round ${round}, byte ${at}: ${ids.length} jobs of ${whole}`
      expect(ids.length, where).toBeGreaterThanOrEqual(whole)
      expect(ids, where).toEqual(Array.from({ length: ids.length }, (_, n) => `job-${n}`))
      await stopped()
    }
  })

  it('is copied while it is used, and the copy is a queue', async () => {
    const running = await started()
    await submit(running, ['a', 'b'])
    const answer = await running.call('POST', '/api/v1/queue/backup', { name: 'copy.db' })
    expect(answer.body).toEqual({ status: 'success', path: join(folder, 'data', 'copy.db') })
    expect((await running.call('POST', '/api/v1/queue/backup', { name: '../copy.db' })).status).toBe(400)
    expect((await running.call('POST', '/api/v1/queue/backup', { name: 'copy.db' })).status).toBe(400)
    expect(statSync(join(folder, 'data', 'copy.db')).mode & 0o777).toBe(0o600)
    await submit(running, ['c'])
    await stopped()
    writeFileSync(file(), readFileSync(join(folder, 'data', 'copy.db')))
    queue = await startTestQueue({}, folder)
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/jobs')
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual(['a', 'b'])
  })
})

/** A small disk needs root and permission to mount; otherwise the test is skipped. */
function canMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), 'vacancy-mount-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', probe])
  if (status === 0) execFileSync('umount', [probe])
  rmSync(probe, { recursive: true })
  return status === 0
}

describe('a full disk', () => {
  it.skipIf(!canMount()).each([
    { what: 'single jobs', count: 1, bytes: 500_000 },
    { what: 'batches that are written to pack files', count: 40, bytes: 25_000 },
  ])(
    'refuses jobs with 429, lets consumers finish what is there, and accepts again: $what',
    { timeout: 240_000 },
    async ({ count, bytes }) => {
      const disk = join(folder, 'disk')
      execFileSync('mkdir', [disk])
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m', 'tmpfs', disk])
      try {
        queue = await startTestQueue({ dataDir: disk }, folder)
        const running = queue
        await running.call('POST', '/producer/topic', { topic: 'orders' })
        writeFileSync(join(disk, 'filler'), Buffer.alloc(60 << 20))
        const accepted: string[] = []
        let answer = { status: 200, body: undefined as unknown }
        for (let n = 0; n < 200 && answer.status === 200; n++) {
          const ids = Array.from({ length: count }, (_, index) => `job-${n}-${index}`)
          answer = await submit(running, ids, bytes)
          if (answer.status === 200) accepted.push(...ids)
        }
        expect(answer).toMatchObject({
          status: 429,
          body: { error: 'queue_full', message: 'the disk of the queue is full' },
        })
        const consumer = await subscribe(running, 'orders', { confirm: true })
        const seen: string[] = []
        for (const _ of accepted) {
          const job = await consumer.job()
          seen.push(job.jobId)
          consumer.ack(job)
        }
        expect(seen).toEqual(accepted)
        const done = () => consumer.messages.filter(({ data }) => data?.result === 'done').length
        await expect.poll(done, { timeout: 20_000 }).toBe(accepted.length)
        rmSync(join(disk, 'filler'))
        await expect.poll(async () => (await submit(running, ['again'])).status, { timeout: 20_000 }).toBe(200)
        await consumer.close()
        await stopped()
      } finally {
        await stopped()
        execFileSync('umount', [disk])
      }
    },
  )
})
