import { expect, test } from 'vitest'
import { foreignIndex } from '../store/client-index.ts'
import { STATE } from '../store/layout.ts'
import { hasGenesis, INDEX_LEVEL, setState } from '../store/store.ts'
import { createNodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import type { Cluster } from './data-directory.ts'
import { shownGenesis } from './genesis.ts'
import { machineOf, onTakenOver, type RecoveryTools } from './recovery-parts.ts'

const tools = { kernelsOf: () => ({ put: () => undefined }) } as unknown as RecoveryTools
const begin = (accept?: (index: number) => boolean) =>
  machineOf(createNodeInMemory(20_000).store, tools, accept).context

const [wanted, own] = [
  { lo: 1, hi: 2 },
  { lo: 3, hi: 4 },
]

test('a digest in the log that differs from that of the state ends a start, which names both', () => {
  expect(() => begin().onDigestMismatch(7, wanted, own)).toThrow(
    expect.objectContaining({
      code: 'digest_mismatch',
      message: 'The state after index 7 has digest 4-3, expected 2-1.',
    }),
  )
})

test('a caller decides for each index whether a different digest is accepted', () => {
  const { onDigestMismatch } = begin((index) => index === 7)
  expect(() => onDigestMismatch(7, wanted, own)).not.toThrow()
  expect(() => onDigestMismatch(8, wanted, own)).toThrow(expect.objectContaining({ code: 'digest_mismatch' }))
})

test.each([
  ['a founder', 4, { baseIndex: 7 }, 8, true],
  ['a founder, at the snapshot of its beginning', 4, { baseIndex: 7 }, 7, false],
  // Its bits may be those of the shard that the snapshot was taken from: peers that have others would refuse it.
  ['a member that joined', 4, { baseIndex: 7, isFounder: false }, 8, false],
  ['a member that joined', 5, { baseIndex: 7, isFounder: false }, 8, true],
])('peers are shown only bits that are certainly of this shard: %s, level %i', (_, level, cluster, applied, shows) => {
  const node = createNodeInMemory(20_000)
  raiseFeatureLevel(node, level)
  setState(node.store, STATE.genesis, 1)

  expect(shownGenesis({ store: node.store, cluster }, applied).some((byte) => byte !== 0)).toBe(shows)
})

const SEED = { index: 7, term: 2, contentDigest: Buffer.from('ab', 'hex') }
const joined = { baseIndex: 7, baseTerm: 2, snapshotDigest: 'ab' }
const founded = { ...joined, drawsGenesis: true }

test.each([
  ['a founder', 5, founded, SEED, true],
  ['a member that joined', 5, joined, SEED, true],
  ['a member that received a later snapshot', 5, joined, { ...SEED, index: 8 }, false],
  ['a founder with data of an older program', 4, founded, SEED, true],
  ['a member of a shard that an older program may have founded', 4, joined, SEED, false],
])(
  'genesis and indexes of a former life do not outlast its snapshot: %s, level %i',
  (_, level, cluster, seed, ends) => {
    const node = createNodeInMemory(20_000)
    const { store } = node
    raiseFeatureLevel(node, level)
    setState(store, STATE.genesis, 1)
    const { context } = machineOf(store, tools)

    onTakenOver({ store, context, cluster: cluster as Cluster }, seed)

    expect(hasGenesis(store.memory)).toBe(!ends)
    // Until the genesis of this life, every index that a source names is of the former one.
    const isFormer = foreignIndex(store.memory, node.index, node.index + 1) === 'below'
    expect(isFormer).toBe(ends && level >= INDEX_LEVEL)
  },
)
