/** A data directory whose machine or process stops at any point: nothing is lost, and the next start continues. */

import { createHash } from 'node:crypto'
import { createCodecList } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { contentOf, crash, createSimulatedDisk, restart, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import {
  closeDataDirectory,
  createCluster,
  openDataDirectory,
  readCluster,
  restoreAside,
  setAside,
  writeCluster,
} from './data-directory.ts'

const PATH = '/srv/vacancy/data'
const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const sha256 = (bytes: Uint8Array) => Uint8Array.from(createHash('sha256').update(bytes).digest())
const CLUSTER = createCluster(
  {
    ...{ shardId: 's1', codecs: createCodecList(['wifi']), base: { index: 1, term: 1 } },
    ...{ snapshotDigest: '', voters: ['n1'] },
  },
  sha256,
)

let processes = 100

function open(disk = createSimulatedDisk()) {
  const simulation = createSimulation({ disk, processId: processes++, seed: SEED })
  return { simulation, disk, directory: openDataDirectory(simulation.env, PATH, { nodeId: 'n1' }) }
}

/** A synced file in a synced folder. */
function put(disk: SimulatedDisk, folder: string, name: string, text: string): void {
  const file = disk.open(`${folder}/${name}`, 'create')
  const bytes = new TextEncoder().encode(text)
  disk.write(file, bytes, 0, bytes.length, 0)
  disk.syncData(file)
  disk.close(file)
  disk.syncDirectory(folder)
}

/** A formed node with a log and a snapshot. */
function formed() {
  const made = open()
  put(made.disk, `${PATH}/wal`, 'log', 'entries')
  put(made.disk, `${PATH}/snapshots`, 'newest', 'planes')
  writeCluster(made.directory, CLUSTER)
  return made
}

/** Where the files with this name are, below the folder. */
function placesOf(disk: SimulatedDisk, name: string, folder = PATH): string[] {
  return disk.list(folder).flatMap((each) => {
    const path = `${folder}/${each}`
    if (disk.stat(path)?.isDirectory) return placesOf(disk, name, path)
    return each === name ? [path] : []
  })
}

/** Runs a change again and again, each time stopped before another operation. The last run is complete. */
function* stops(start: () => { disk: SimulatedDisk; run: () => void }): Generator<{ disk: SimulatedDisk; at: number }> {
  for (let at = 0; ; at++) {
    const { disk, run } = start()
    let left = at
    disk.fault = () => (left-- > 0 ? undefined : { kind: 'crash' })
    try {
      run()
      return
    } catch (error) {
      if (!disk.crashed) throw error
      yield { disk, at }
    }
  }
}

/** Nothing that was not synced survives; all of it; and any of it. */
function outcomesOf(disk: SimulatedDisk, random: Random): SimulatedDisk[] {
  return [() => false, () => true, () => random.below(2) === 0].map((survives) => crash(disk, survives))
}

const MOVED = ['wal', 'snapshots', 'CLUSTER']

test('data that is set aside is in one of two places whenever the machine stops, and all of it after the next call', () => {
  const random = createRandom(SEED)
  let count = 0
  const start = () => {
    const { disk, directory } = formed()
    return { disk, run: () => setAside(directory, MOVED, 'lost') }
  }
  for (const { disk, at } of stops(start)) {
    for (const after of outcomesOf(disk, random)) {
      const message = `seed ${SEED}, stopped before operation ${at}`
      const found = [placesOf(after, 'log'), placesOf(after, 'newest'), placesOf(after, 'CLUSTER')]
      // A rename over two folders that is half durable may leave both names.
      for (const places of found) expect(places.length, message).toBeGreaterThan(0)
      const { directory } = open(after)
      setAside(directory, MOVED, 'lost')
      expect(placesOf(after, 'CLUSTER')[0], message).toContain('/quarantine/')
      expect([readCluster(after, PATH), after.list(`${PATH}/wal`), after.list(`${PATH}/snapshots`)], message).toEqual([
        undefined,
        [],
        [],
      ])
      count++
    }
  }
  expect(count).toBeGreaterThan(20)
})

test('names that a killed process left in memory are durable once the next one has opened the folder', () => {
  const start = () => {
    const { disk, directory } = formed()
    return { disk, run: () => setAside(directory, MOVED, 'lost') }
  }
  for (const { disk, at } of stops(start)) {
    const next = restart(disk)
    const before = ['log', 'newest', 'CLUSTER'].map((name) => placesOf(next, name))
    open(next)
    const after = crash(next, () => false)
    expect(
      ['log', 'newest', 'CLUSTER'].map((name) => placesOf(after, name)),
      `stopped before operation ${at}`,
    ).toEqual(before)
  }
})

test('data that is put back is in one of two places whenever the machine stops, and durable at the end', () => {
  const random = createRandom(SEED)
  const start = () => {
    const { disk, directory } = formed()
    const place = setAside(directory, MOVED, 'lost')
    return { disk, run: () => restoreAside(directory, place.slice('quarantine/'.length)) }
  }
  for (const { disk, at } of stops(start)) {
    for (const after of outcomesOf(disk, random)) {
      const found = ['log', 'newest', 'CLUSTER'].map((name) => placesOf(after, name).length)
      expect(Math.min(...found), `seed ${SEED}, stopped before operation ${at}`).toBeGreaterThan(0)
    }
  }
  const { disk, run } = start()
  run()
  const after = crash(disk, () => false)
  expect(readCluster(after, PATH)).toEqual(CLUSTER)
  expect([after.list(`${PATH}/wal`), after.list(`${PATH}/snapshots`)]).toEqual([['log'], ['newest']])
})

test('a folder and its parents are durable before the node has a genesis', () => {
  for (const { disk, at } of stops(() => {
    const made = createSimulatedDisk()
    return { disk: made, run: () => writeCluster(open(made).directory, CLUSTER) }
  })) {
    const after = crash(disk, () => false)
    const { directory } = open(after)
    expect(directory.cluster, `stopped before operation ${at}`).toBeUndefined()
  }
  const { disk, directory } = open()
  writeCluster(directory, CLUSTER)
  const after = crash(disk, () => false)
  expect([readCluster(after, PATH), after.list(PATH)]).toEqual([
    CLUSTER,
    ['CLUSTER', 'IDENTITY', 'LOCK', 'lock.db', 'snapshots', 'wal'],
  ])
})

test('a formed node does not sync the parents of its folder again', () => {
  const { disk, directory } = formed()
  closeDataDirectory(directory)
  const before = disk.operations.length
  open(disk)
  const synced = disk.operations.slice(before).filter(({ call }) => call === 'syncDirectory')
  expect(synced.map(({ path }) => path)).toEqual([PATH])
})

test('a close leaves the lock of another process', () => {
  const { disk, directory } = formed()
  disk.unlink(`${PATH}/LOCK`)
  put(disk, PATH, 'LOCK', 'of another process')
  closeDataDirectory(directory)
  expect(new TextDecoder().decode(contentOf(disk, `${PATH}/LOCK`))).toBe('of another process')
  disk.unlink(`${PATH}/LOCK`)
  closeDataDirectory(directory)
  expect(disk.list(PATH)).not.toContain('LOCK')
})
