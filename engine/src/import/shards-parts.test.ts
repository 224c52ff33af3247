/** How the input is split: which bytes reach which shard, and what remains when one of them cannot be built. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList } from '@vacancy/shared'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createEnv } from '../env.ts'
import type { ImportOptions, ImportOutcome } from './import.ts'
import { buildShards, PARTS_FOLDER, type ShardsOptions } from './shards.ts'

type Part = { properties: string; packages: string; options: ImportOptions }

/** The parts in the order in which they were built. */
let parts: Part[]
let outcomeOf: (shardId: string) => ImportOutcome | Error

vi.mock(import('./import.ts'), async (original) => ({
  ...(await original()),
  buildSnapshot: async (_env: unknown, options: ImportOptions) => {
    const textOf = (name: string) => readFileSync(join(options.inputPath, name), 'latin1')
    parts.push({ properties: textOf('properties.csv'), packages: textOf('packages.csv'), options })
    const outcome = outcomeOf(options.shardId)
    if (outcome instanceof Error) throw outcome
    if (outcome.ok) {
      mkdirSync(options.outputPath, { recursive: true })
      writeFileSync(join(options.outputPath, 'seed.snapshot'), options.shardId)
    }
    return outcome
  },
}))

const root = mkdtempSync(join(tmpdir(), 'vacancy-parts-'))
afterAll(() => rmSync(root, { recursive: true }))

const built = (shardId: string) =>
  ({ ok: true, summary: { snapshotId: `id-${shardId}`, packages: 11, properties: 7 } }) as ImportOutcome
const failed = { ok: false, errors: { count: 1, countByKind: {}, first: [] } } as ImportOutcome

beforeEach(() => {
  parts = []
  outcomeOf = built
})

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
const many = (id: string, count: number) => one(id).repeat(count)

describe('segments to shards', () => {
  test.each<[string, [string, number][], number, string[][]]>([
    [
      'all fit one',
      [
        ['a', 3],
        ['b', 2],
      ],
      5,
      [['a', 'b']],
    ],
    [
      'one package too many',
      [
        ['a', 3],
        ['b', 3],
      ],
      5,
      [['a'], ['b']],
    ],
    [
      'the first shard with space is taken',
      [
        ['a', 3],
        ['b', 4],
        ['c', 2],
      ],
      5,
      [['a', 'c'], ['b']],
    ],
    [
      'a shard that is exactly full takes a segment without packages',
      [
        ['a', 5],
        ['b', 0],
      ],
      5,
      [['a', 'b']],
    ],
    [
      'the second shard has space',
      [
        ['a', 5],
        ['b', 2],
        ['c', 3],
      ],
      5,
      [['a'], ['b', 'c']],
    ],
    ['a segment as large as a shard', [['a', 5]], 5, [['a']]],
  ])('%s', async (_, segments, packagesMax, expected) => {
    const found = await split(
      segments.map(([name]) => property(`p${name}`, name)).join(''),
      segments.map(([name, count]) => many(`p${name}`, count)).join(''),
      packagesMax,
    )

    expect(found.map((part) => part.segments)).toEqual(expected)
    const sizes = new Map(segments)
    const sum = (names: string[]) => names.reduce((all, name) => all + (sizes.get(name) ?? 0), 0)
    expect(found.map(({ count }) => count)).toEqual(expected.map(sum))
    const linesOf = (text: string) => text.split('\n').length - 1
    expect(found.map(({ packages }) => linesOf(packages))).toEqual(expected.map(sum))
  })

  test('a segment with one package more than a shard takes is refused before anything is written', async () => {
    const options = optionsOf(property('p', 'a') + property('q', 'b'), many('p', 1) + many('q', 3), 2)

    await expect(buildShards(env, options)).rejects.toMatchObject({
      code: 'usage_error',
      message: expect.stringContaining('segment "b" has 3 packages, --max-shard-packages is 2'),
    })
    expect(readdirSync(options.outputPath)).toEqual([])
  })

  test.each([
    [256, { code: 'ENOTDIR' }],
    [
      257,
      { code: 'usage_error', message: expect.stringMatching(/take 257 shards of 1 packages; at most 256 are made/) },
    ],
  ])('%i shards', async (count, error) => {
    const ids = Array.from({ length: count }, (_, n) => `p${n}`)
    const options = optionsOf(ids.map((id) => property(id, id)).join(''), ids.map((id) => one(id)).join(''), 1)
    // No folder: allowed shards cannot be written.
    const outputPath = join(options.inputPath, 'properties.csv')

    await expect(buildShards(env, { ...options, outputPath })).rejects.toMatchObject(error)
  })

  test('files without records make one empty shard', async () => {
    const header = 'PropertyID,Segment\n'

    expect(await split(header, '', 5)).toEqual([{ segments: [], count: 0, properties: header, packages: '' }])
    expect(await split('', '', 5)).toMatchObject([{ properties: '', packages: '' }])
  })

  test('packages outside of any segment do not count', async () => {
    expect(
      await split(property('p', 'a'), one('p') + many('unknown', 5) + many('not an id, quite!', 2), 1),
    ).toMatchObject([{ segments: ['a'], count: 1 }])
  })
})

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

  test('records that cannot be read go to the first shard, whose build reports them', async () => {
    const wrong = ['not an id, quite!,double\n', 'unknown,double\n', '"p2"x,double\n', '"p2,open\n']
    const found = await split(
      `${property('p1', 'a')}p2\np2 has no segment,\n${property('p2', 'b')}`,
      one('p2') + wrong.join('') + one('p1'),
      1,
    )

    expect(found[0]).toMatchObject({
      properties: `${property('p1', 'a')}p2 has no segment,\n`,
      packages: wrong.join('') + one('p1'),
    })
    expect(found[1]).toMatchObject({ properties: `p2\n${property('p2', 'b')}`, packages: one('p2') })
  })

  test('a header is in each part, empty lines in none', async () => {
    const [header, packagesHeader] = ['\nProperty_ID,Segment\r\n', 'property-id,Room Type\n']
    const found = await split(
      `${header}\n${property('p', 'a')}\n \n${property('q', 'b')}`,
      `${packagesHeader}\r\n${one('q')}\n${one('p')}`,
      1,
    )

    expect(found.map(({ properties }) => properties)).toEqual([
      `Property_ID,Segment\r\n${property('p', 'a')}`,
      `Property_ID,Segment\r\n${property('q', 'b')}`,
    ])
    expect(found.map(({ packages }) => packages)).toEqual([
      `${packagesHeader}${one('p')}`,
      `${packagesHeader}${one('q')}`,
    ])
  })

  test('only the first line can be a header: a later one is a record without a property', async () => {
    const header = 'PropertyID,RoomType\n'
    const found = await split(property('p', 'a') + property('q', 'b'), one('q') + header + one('p'), 1)

    expect(found.map(({ packages }) => packages)).toEqual([header + one('p'), one('q')])
  })

  test('a byte order mark is not part of the first name or id', async () => {
    const mark = '\xef\xbb\xbf'
    const found = await split(`${mark}Segment,Property ID\na,p\n`, `${mark}p,double\n`, 1)
    expect(found).toMatchObject([{ segments: ['a'], count: 1, properties: 'Segment,Property ID\na,p\n' }])
    // Two bytes of it are text, and a mark later on, too.
    const text = `\xef\xbbp,a\n${mark}p,a\n`
    expect(await split(text, one('p'), 1)).toMatchObject([{ count: 0, properties: text }])
    expect(await split(`p\xbb\xbf,a\n`, one('p'), 1)).toMatchObject([{ properties: 'p\xbb\xbf,a\n' }])
  })

  test('the header decides in which columns property and segment are', async () => {
    const properties = 'Area,Segment_,Stars,PROPERTY-ID\nx,a,3,p\ny,b,4,q\n'
    const packages = 'RoomType,PropertyID\ndouble,q\nsuite,p\n'

    expect(await split(properties, packages, 1)).toMatchObject([
      { segments: ['a'], packages: 'RoomType,PropertyID\nsuite,p\n' },
      { segments: ['b'], packages: 'RoomType,PropertyID\ndouble,q\n' },
    ])
    // Without a column of that name it is the second one.
    expect(await split('PropertyID,Group\np,a\nq,b\n', one('p') + one('q'), 1)).toMatchObject([
      { segments: ['a'] },
      { segments: ['b'] },
    ])
  })

  test('the last property of an id decides its segment, as in a file with a repeat', async () => {
    const found = await split(property('p', 'a') + property('q', 'b') + property('p', 'b'), one('p') + one('q'), 2)

    expect(found.map(({ segments, count }) => [segments, count])).toEqual([[['a', 'b'], 2]])
    expect(parts[0]?.properties).toBe(property('p', 'a') + property('q', 'b') + property('p', 'b'))
  })

  test('a last line without its end stays as it is', async () => {
    const [properties, packages] = [property('p', 'a').trimEnd(), one('p').trimEnd()]

    expect(await split(properties, packages, 1)).toMatchObject([{ properties, packages }])
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

  test('a file of several reads and writes loses and repeats nothing', async () => {
    const text = (n: number) => `${n}${'x'.repeat(60_000)}`
    const lines = Array.from({ length: 150 }, (_, n) => one(n % 3 === 0 ? 'p' : 'q', text(n)))
    expect(lines.join('').length).toBeGreaterThan(8.5 * 2 ** 20)

    const found = await split(property('p', 'a') + property('q', 'b'), lines.join(''), 100)

    const expected = [lines.filter((_, n) => n % 3 === 0), lines.filter((_, n) => n % 3 !== 0)]
    expect(found.map(({ count }) => count)).toEqual([50, 100])
    // Not toEqual: a difference of megabytes would be printed.
    expect(found.map(({ packages }, at) => packages === expected[at]?.join(''))).toEqual([true, true])
  })
})

describe('building', () => {
  const two = () => optionsOf(property('p', 'a') + property('q', 'b'), one('p') + one('q'), 1)

  test('each shard is built from its part, which is removed, with the options of the whole', async () => {
    const leftovers: string[][] = []
    const options = { ...two(), onShard: () => leftovers.push(readdirSync(join(options.outputPath, PARTS_FOLDER))) }
    mkdirSync(join(options.outputPath, PARTS_FOLDER, 'old'), { recursive: true })

    const outcome = await buildShards(env, options)

    expect(outcome).toMatchObject({
      ok: true,
      shards: [
        { shardId: 's1', folder: 's1', segments: ['a'], summary: { snapshotId: 'id-s1' } },
        { shardId: 's2', folder: 's2', segments: ['b'], summary: { snapshotId: 'id-s2' } },
      ],
    })
    expect(parts.map(({ options: of }) => of)).toMatchObject([
      {
        ...options,
        shardId: 's1',
        inputPath: join(options.outputPath, PARTS_FOLDER, 's1'),
        outputPath: join(options.outputPath, 's1'),
      },
      {
        ...options,
        shardId: 's2',
        inputPath: join(options.outputPath, PARTS_FOLDER, 's2'),
        outputPath: join(options.outputPath, 's2'),
      },
    ])
    expect(leftovers).toEqual([['s2'], []])
    expect(readdirSync(options.outputPath).sort()).toEqual(['s1', 's2', 'shards.json'])
    const shard = (n: number, segment: string) => ({
      ...{ shardId: `s${n}`, snapshot: `s${n}/seed.snapshot`, snapshotId: `id-s${n}`, packages: 11, properties: 7 },
      segments: [segment],
    })
    expect(JSON.parse(readFileSync(join(options.outputPath, 'shards.json'), 'utf8'))).toEqual({
      shards: [shard(1, 'a'), shard(2, 'b')],
    })
  })

  test.each<[string, ImportOutcome | Error]>([
    ['has errors in its lines', failed],
    ['throws', new Error('disk full')],
  ])('when the second shard %s, nothing of the first remains', async (_, outcome) => {
    const options = two()
    const finished: string[] = []
    outcomeOf = (shardId) => (shardId === 's2' ? outcome : built(shardId))

    const building = buildShards(env, { ...options, onShard: ({ snapshotId }) => finished.push(snapshotId) })

    if (outcome instanceof Error) await expect(building).rejects.toBe(outcome)
    else expect(await building).toEqual({ ok: false, shardId: 's2', outcome })
    expect(finished).toEqual(['id-s1'])
    expect(existsSync(join(options.outputPath, 's1/seed.snapshot'))).toBe(false)
    expect(readdirSync(options.outputPath)).toEqual(['s1'])
  })

  test('one existing snapshot is enough to refuse all, unless it is to be replaced', async () => {
    const options = two()
    const file = join(options.outputPath, 's2/seed.snapshot')
    mkdirSync(join(options.outputPath, 's2'))
    writeFileSync(file, 'old')

    await expect(buildShards(env, options)).rejects.toThrow(`${file} is there already; --overwrite replaces it`)
    expect(parts).toEqual([])
    expect(readFileSync(file, 'utf8')).toBe('old')
    expect((await buildShards(env, { ...options, overwrite: true })).ok).toBe(true)
    expect(readFileSync(file, 'utf8')).toBe('s2')
  })

  test.each(['properties.csv', 'packages.csv'])('a missing %s is an error that names it', async (name) => {
    const options = two()
    const path = join(options.inputPath, name)
    rmSync(path)

    await expect(buildShards(env, options)).rejects.toMatchObject({
      code: 'failure',
      message: expect.stringContaining(`${path} cannot be read: ENOENT`),
      cause: { code: 'ENOENT' },
    })
  })
})
