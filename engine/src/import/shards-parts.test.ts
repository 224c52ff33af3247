/** Which bytes of the input reach which shard. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList } from '@vacancy/shared'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { createEnv } from '../env.ts'
import type { ImportOptions, ImportOutcome } from './import.ts'
import { buildShards, type ShardsOptions } from './shards.ts'

type Part = { properties: string; packages: string; options: ImportOptions }

/** The parts in the order in which they were built. */
let parts: Part[]

vi.mock(import('./import.ts'), async (original) => ({
  ...(await original()),
  buildSnapshot: async (_env: unknown, options: ImportOptions) => {
    const textOf = (name: string) => readFileSync(join(options.inputPath, name), 'latin1')
    parts.push({ properties: textOf('properties.csv'), packages: textOf('packages.csv'), options })
    mkdirSync(options.outputPath, { recursive: true })
    writeFileSync(join(options.outputPath, 'seed.snapshot'), options.shardId)
    return { ok: true, summary: { snapshotId: 'id', packages: 11, properties: 7 } } as ImportOutcome
  },
}))

const root = mkdtempSync(join(tmpdir(), 'vacancy-parts-'))
afterAll(() => rmSync(root, { recursive: true }))

const env = createEnv({ debug: () => {}, info: () => {}, warn: () => {}, error: () => {} })

function optionsOf(properties: string, packages: string, packagesMax: number): ShardsOptions {
  const inputPath = mkdtempSync(join(root, 'in-'))
  writeFileSync(join(inputPath, 'properties.csv'), properties, 'latin1')
  writeFileSync(join(inputPath, 'packages.csv'), packages, 'latin1')
  const outputPath = join(inputPath, 'out')
  mkdirSync(outputPath)
  return {
    ...{ shardId: 's', inputPath, outputPath, packagesMax, codecs: createCodecList(['a']) },
    ...{ firstDay: 1, lastDay: 2, outOfWindow: 'skip', errorsMax: 20, overwrite: false, threads: 1 },
  }
}

/** Segments and files of the parts. */
async function split(properties: string, packages: string, packagesMax: number) {
  parts = []
  const outcome = await buildShards(env, optionsOf(properties, packages, packagesMax))
  if (!outcome.ok) throw new Error('a shard was not built')
  return outcome.shards.map(({ segments, packages: count }, at) => {
    const { properties, packages } = parts[at] as Part
    return { segments, count, properties, packages }
  })
}

const property = (id: string, segment: string) => `${id},${segment},A,hotel,luxury,4,1,2,wifi\n`
const one = (id: string, more = '') => `${id},double,2026-09-01,3,120,${more}\n`

describe('records to shards', () => {
  test('each record reaches the shard of its segment, unchanged and in order', async () => {
    const properties = [
      property('p1', 'a'),
      ' "p2" , "b" ,A\r\n',
      property('p3', 'a'),
      '"p4","b\nb"\n',
      property('p5', 'b'),
    ]
    const packages = [one('p3'), one('"p2"'), 'p1 ,"do""uble"\r\n', one('p5', 'x|y'), '"p3","a\nb"\n', one('p4')]

    const found = await split(properties.join(''), packages.join(''), 3)

    expect(found).toEqual([
      {
        ...{ segments: ['a'], count: 3 },
        properties: `${properties[0]}${properties[2]}`,
        packages: `${packages[0]}${packages[2]}${packages[4]}`,
      },
      {
        ...{ segments: ['b', 'b\nb'], count: 3 },
        properties: `${properties[1]}${properties[3]}${properties[4]}`,
        packages: `${packages[1]}${packages[3]}${packages[5]}`,
      },
    ])
  })

  test.each([
    ['just above the limit', `${'x'.repeat(65_536)}${one('q')}`],
    ['of several reads', `${'x'.repeat(18 * 2 ** 20)}${one('q')}`],
    ['at the end of the file', `${'x'.repeat(65_536)}${one('q')}`.trimEnd()],
  ])('a line above the limit stays one line, also when its rest is a record: %s', async (_, long) => {
    const last = long.endsWith('\n') ? one('p') : ''
    const lines = one('p') + one('q').repeat(2) + long + last
    const found = await split(property('p', 'a') + property('q', 'b'), lines, 2)
    // Not toEqual: a difference of megabytes would be printed.
    expect(found.map(({ packages }) => packages === one('q').repeat(2))).toEqual([false, true])
    expect(found[0]?.packages === one('p') + long + last).toBe(true)
  })
})
