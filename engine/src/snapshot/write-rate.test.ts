/** The rate limit of writes on a clock that advances on request, chunks that exist already, and a full disk. */

import { beforeEach, describe, expect, test } from 'vitest'
import { follow } from '../steps.ts'
import { contentOf, createSimulatedDisk, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation, type Simulation } from '../testing/simulation.ts'
import { createTestSource, type TestSource } from '../testing/snapshot-source.ts'
import { chunkFileName } from './format.ts'
import { DEAD_ROW } from './schema.ts'
import {
  chunksFolder,
  inlineEncoder,
  type PreviousSnapshot,
  type WordsEncoder,
  type WriteOptions,
  type WrittenSnapshot,
  writeSeedFile,
  writeSnapshotDirAtOnce,
  writeSnapshotDirSteps,
} from './write.ts'

const source: TestSource = createTestSource({ segments: 2, roomTypes: 1, propertiesPerSegment: 3, nights: 2 })
const encoder = inlineEncoder(source, source.planes.scratch[0] as number)

let disk: SimulatedDisk
let simulation: Simulation
beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory('/data')
  simulation = createSimulation({ disk })
})

function write(changes: Partial<TestSource> = {}, previous?: PreviousSnapshot, sometimes?: () => boolean) {
  const env = { ...simulation.env, ...(sometimes && { sometimes }) }
  return writeSnapshotDirAtOnce(
    env,
    '/data',
    { ...source, ...changes },
    {
      ...{ encoder, origin: 'test' },
      ...(previous && { previous }),
    },
  )
}

describe('the rate limit', () => {
  function begin(options: Partial<WriteOptions>): WrittenSnapshot[] {
    const written: WrittenSnapshot[] = []
    const steps = writeSnapshotDirSteps(simulation.env, '/data', source, { encoder, origin: 'test', ...options })
    follow(
      steps,
      (value) => value && written.push(value),
      (error) => expect.unreachable(String(error)),
    )
    return written
  }

  const chunkCount = () => disk.list(chunksFolder('/data')).length

  test('each new chunk is followed by a pause as long as its bytes take', () => {
    simulation.advance(5_000)
    const written = begin({ bytesPerSecond: 1 })
    let at = 0
    for (let count = 1; count <= 5; count++) {
      expect(chunkCount()).toBe(count)
      const sizes = disk.list(chunksFolder('/data')).map((name) => disk.stat(`${chunksFolder('/data')}/${name}`)?.bytes)
      const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
      simulation.advance(bytes * 1000 - at - 1)
      expect([chunkCount(), written.length]).toEqual([count, 0])
      simulation.advance(1)
      at = bytes * 1000
    }

    expect(written).toMatchObject([{ newChunkBytes: at / 1000, note: { durationMs: at } }])
  })

  test('time that passed before a chunk counts', () => {
    const total = write()?.chunkBytes as number
    disk = createSimulatedDisk()
    disk.makeDirectory('/data')
    simulation = createSimulation({ disk })
    // Encoding takes longer than all pauses together.
    const slow: WordsEncoder = {
      ahead: 1,
      encode: (part) => {
        simulation.advance(total * 1000)
        return encoder.encode(part)
      },
    }
    const written = begin({ bytesPerSecond: 1, encoder: slow })
    simulation.advance(total * 1000)

    expect(written).toHaveLength(1)
    const [properties, tables] = (written as [WrittenSnapshot])[0].manifest.blocks.map(
      ({ parts }) => parts[0]?.bytes ?? 0,
    ) as [number, number]
    expect(written[0]?.note.durationMs).toBe((properties + tables + total) * 1000)
  })

  test('a caller that waits lifts it', () => {
    let isHurried = false
    const written = begin({ bytesPerSecond: 1, isHurried: () => isHurried })
    expect(chunkCount()).toBe(1)
    isHurried = true
    simulation.advance(10_000_000)

    expect(written).toHaveLength(1)
    const [first] = written as [WrittenSnapshot]
    // Only the first chunk waited.
    expect(first.note.durationMs).toBe((first.manifest.blocks[0]?.parts[0]?.bytes ?? 0) * 1000)
  })

  test('chunks that exist cost nothing, and without a limit there is no pause', () => {
    const first = write()
    expect(first?.note.durationMs).toBe(0)

    const written = begin({ bytesPerSecond: 1 })

    expect(written).toMatchObject([{ newChunkBytes: 0, chunkBytes: first?.chunkBytes, note: { durationMs: 0 } }])
  })
})

describe('existing chunks', () => {
  const fileOf = ({ manifest }: WrittenSnapshot, kind: string) => {
    const part = manifest.blocks.find((block) => block.kind === kind)?.parts[0]
    return `${chunksFolder('/data')}/${chunkFileName(part?.digest as Uint8Array)}`
  }
  const flip = (path: string) => damage(disk, path, 40, Uint8Array.of((contentOf(disk, path)[40] as number) ^ 1))

  test('one that was damaged meanwhile is written again, unless this process has just written it', () => {
    const first = write() as WrittenSnapshot
    const path = fileOf(first, 'tables')
    const whole = contentOf(disk, path).slice()
    flip(path)

    // Known from the previous snapshot: not read again.
    expect(write({ index: 2 }, first.previous, () => false)?.newChunkBytes).toBe(0)
    expect(write({ index: 2 }, first.previous, () => true)?.newChunkBytes).toBe(whole.length)
    flip(path)
    expect(write({ index: 3 })?.newChunkBytes).toBe(whole.length)
    expect(contentOf(disk, path)).toEqual(whole)
    expect(disk.openFiles()).toBe(0)
  })

  test('one that is missing or of another length is written again, whatever is known of it', () => {
    const first = write() as WrittenSnapshot
    const path = fileOf(first, 'sessions')
    const bytes = disk.stat(path)?.bytes
    disk.unlink(path)

    expect(write({ index: 2 }, first.previous)?.newChunkBytes).toBe(bytes)
    disk.unlink(path)
    disk.close(disk.open(path, 'create'))
    expect(write({ index: 3 }, first.previous)?.newChunkBytes).toBe(bytes)
  })

  test('words of an unchanged table are encoded again when their chunk is gone', () => {
    const first = write() as WrittenSnapshot
    disk.unlink(fileOf(first, 'words'))

    const second = write({ index: 2, unchangedSince: () => true }, first.previous)

    expect(second?.manifest.contentDigest).toEqual(first.manifest.contentDigest)
    expect(second?.newChunkBytes).toBe(second?.manifest.blocks[2]?.parts[0]?.bytes)
  })
})

test('parts of words are requested ahead of their turn, in order, and each once', async () => {
  // One table of three parts; what is in them does not matter here.
  const rows = new Uint32Array(2_400).fill(DEAD_ROW)
  const days = Uint32Array.from({ length: 366 }, (_, night) => 20_454 + night)
  const many: TestSource = { ...source, tables: [{ segment: 0, roomType: 0, rows, days }] }
  const log: string[] = []
  let inFlight = 0
  const ahead: WordsEncoder = {
    ahead: 2,
    encode: async (part) => {
      inFlight++
      log.push(`${part}:${inFlight}`)
      await Promise.resolve()
      inFlight--
      return encoder.encode(0)
    },
  }

  const written = await writeSeedFile(simulation.env, '/data/a', many, { encoder: ahead })

  expect(written?.manifest.blocks.find(({ kind }) => kind === 'words')?.parts).toHaveLength(3)
  expect(log.map((line) => line[0])).toEqual(['0', '1', '2'])
  expect(log.slice(0, 2)).toEqual(['0:1', '1:2'])
})

test('a full disk removes what the attempt added, other failures leave it', () => {
  for (const [code, left] of [
    ['ENOSPC', 0],
    ['EIO', 2],
  ] as const) {
    let writes = 0
    disk.fault = ({ call, path }) =>
      call === 'write' && path.includes('/chunks/') && ++writes === 3 ? { kind: 'fail', code } : undefined

    expect(() => write({ index: 4 })).toThrow(expect.objectContaining({ code: code === 'EIO' ? 'disk_failed' : code }))
    expect(disk.list(chunksFolder('/data')).filter((name) => name.endsWith('.chk'))).toHaveLength(left)
    disk.fault = () => undefined
  }
  expect(disk.openFiles()).toBe(0)
})
