import type { Hop } from '@vacancy/shared/contract'
import { COMMAND_LIST, COMMANDS } from '@vacancy/shared/wire'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateOf, dayOf } from '../../lib/days.ts'
import { percentile, scaleOf, stepOf } from '../../ui/price-scale.ts'
import { hexagons, neighbourOf, project, scaleBar } from '../../ui/projection.ts'
import { commandGroups, type QueryCommand, widgetOf } from './catalogue.ts'
import { countText, formatDates, isUnsold, parseDates, whyNotDay } from './dates.ts'
import { comparedRows, csvOf, gridOf } from './rows.ts'
import { barsOf, spreadOf, timesText } from './timing.ts'

test('typed dates', () => {
  expect(parseDates('2026-11-20..2026-11-22')).toEqual({ ok: true, dates: ['2026-11-20', '2026-11-21', '2026-11-22'] })
  expect(parseDates('2026-12-30+3, 2026-11-01')).toEqual({
    ok: true,
    dates: ['2026-11-01', '2026-12-30', '2026-12-31', '2027-01-01'],
  })
  expect(parseDates('')).toEqual({ ok: true, dates: [] })
  for (const wrong of [
    'tomorrow',
    '2026-02-30',
    '2026-11-22..2026-11-20',
    '2026-11-20+400',
    '2026-11-20+0',
    '2026-11-20..2029-01-01',
  ]) {
    expect(parseDates(wrong)).toMatchObject({ ok: false })
  }
  expect(parseDates('2026-12-04+5')).toMatchObject({ dates: { length: 5 } })
  expect(countText(['a', 'b', 'c', 'd', 'e'])).toBe('5 nights')
  expect(countText(['a'])).toBe('1 night')
})

test('formatted dates parse to the same dates', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 40_000 }), { maxLength: 20 }), (days) => {
      const dates = days.sort((a, b) => a - b).map(dateOf)
      expect(dates.map(dayOf)).toEqual(days)
      expect(parseDates(formatDates(dates))).toEqual({ ok: true, dates })
    }),
  )
})

test('nights without packages', () => {
  const sold = { window: { from: '2026-11-20', to: '2026-11-22' }, packages: [4, 0, 1] }
  const unsold = (date: string) => isUnsold(dayOf(date) as number, sold)

  expect(['2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22', '2026-11-23'].map(unsold)).toEqual([
    true,
    false,
    true,
    false,
    true,
  ])
  expect(isUnsold(1, { window: null, packages: [] })).toBe(false)
})

test('disabled days have a reason', () => {
  const bounds = { window: { from: '2026-11-20', to: '2027-02-18' }, datesMax: 14, shard: 's3' }
  const why = (date: string, first?: string) =>
    whyNotDay(dayOf(date) as number, bounds, first === undefined ? undefined : dayOf(first))

  expect(why('2026-11-19')).toBe('before the first date of s3')
  expect(why('2027-02-19')).toBe('after the last date of s3')
  expect(why('2026-12-03', '2026-11-20')).toBeUndefined()
  expect(why('2026-12-04', '2026-11-20')).toBe('at most 14 dates on s3')
  expect(whyNotDay(0, { window: null, datesMax: null, shard: 's3' }, 400)).toBeUndefined()
})

test('no exported cell is a formula', () => {
  const cells = ['=1+1', '+1', '-1', '@x', ' =1', '\t=1', '\r1', '＝1', 'a,b', 'say "hi"', 'two\nlines', 'plain', 'a=b']
  const text = csvOf({ columns: ['property'], rows: cells.map((cell) => [cell]) })

  expect(text).toBe(
    [
      'property',
      "'=1+1",
      "'+1",
      "'-1",
      "'@x",
      "' =1",
      "'\t=1",
      `"'\r1"`,
      "'＝1",
      '"a,b"',
      '"say ""hi"""',
      '"two\nlines"',
      'plain',
      'a=b',
      '',
    ].join('\r\n'),
  )
  expect(csvOf({ columns: ['n'], rows: [[-5]] })).toBe('n\r\n-5\r\n')
})

test('results as rows', () => {
  const night = { date: '2026-11-20', availability: 2, finalPrice: 120, rateFeatures: ['a', 'b'] }
  expect(
    gridOf({ command: 'SEARCHAVAIL', result: { numDays: 1, properties: [{ propertyId: 'h', days: [night] }] } }),
  ).toEqual({
    columns: ['property', '2026-11-20 price', '2026-11-20 rooms', '2026-11-20 features', 'total'],
    rows: [['h', 120, 2, 'a b', 120]],
  })
  expect(
    gridOf({
      command: 'SEARCHAVAIL',
      result: { properties: [{ propertyId: 'h', days: [night, { ...night, date: '2026-11-21', finalPrice: 80 }] }] },
    }).rows,
  ).toEqual([['h', 120, 2, 'a b', 80, 2, 'a b', 200]])
  const values = { total: 120, distanceMetres: 850, roomType: 'double' }
  expect(
    gridOf({ command: 'SEARCHAVAIL', result: { numDays: 0, properties: [{ propertyId: 'h', days: [], ...values }] } }),
  ).toEqual({
    columns: ['property', 'room type', 'distance in metres', 'total'],
    rows: [['h', 'double', 850, 120]],
  })
  expect(gridOf({ command: 'SEARCHAVAIL', result: {} })).toEqual({ columns: ['property', 'total'], rows: [] })
  expect(gridOf({ command: 'GETPROPROOMDAY', result: { propertyId: 'h', ...night } }).rows).toEqual([
    ['h', 120, 2, 'a b', 120],
  ])
  for (const [result, column] of [
    [{ propertyIds: ['x', 'y'] }, 'property'],
    [{ dates: ['x', 'y'] }, 'date'],
    [{ roomTypes: ['x', 'y'] }, 'room type'],
  ] as const)
    expect(gridOf({ command: 'X', result })).toEqual({ columns: [column], rows: [['x'], ['y']] })
  expect(gridOf({ command: 'GETCODECS', result: { rateFeatures: ['x', 'y'] } })).toEqual({
    ...{ columns: ['bit', 'rate feature'], rows: [0, 1].map((bit) => [bit, bit === 0 ? 'x' : 'y']) },
  })
  expect(gridOf({ command: 'DECROOMAVL', result: { availability: 3, explain: {} } })).toEqual({
    ...{ columns: ['field', 'value'], rows: [['availability', '3']] },
  })
  expect(gridOf({ command: 'PROPEXIST', result: { exists: true } }).rows).toEqual([['exists', 'true']])
  expect(gridOf({ command: 'GETSEGMENTS', result: { segments: [{ segment: 's', propertyCount: 3 }] } }).rows).toEqual([
    ['s', 3],
  ])
})

test('prices fall into seven steps with as many values each, and equal ones into the same', () => {
  const values = Array.from({ length: 100 }, (_, n) => n + 1).concat(1_000_000)
  const scale = scaleOf(values)
  expect([1, 15, 16, 51, 100, 1_000_000].map((value) => stepOf(scale, value))).toEqual([1, 1, 2, 4, 7, 7])
  const clustered = scaleOf([49, 80, 81, 82, 83, 84, 486])
  expect([49, 80, 81, 82, 83, 84, 486].map((value) => stepOf(clustered, value))).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect([5, 5, 9].map((value) => stepOf(scaleOf([5, 5, 5, 5, 5, 5, 5, 9]), value))).toEqual([1, 1, 7])
  expect(stepOf(scaleOf([5]), 5)).toBe(1)
  expect(percentile([], 50)).toBe(0)
  expect(percentile([1, 2, 3, 4], 50)).toBe(2)
})

test('the projection keeps north up, shape and neighbourhood, also across the antimeridian', () => {
  const size = { width: 400, height: 300 }
  const { points, place } = project(
    [
      { id: 'sw', latitude: 48, longitude: 16 },
      { id: 'ne', latitude: 48.1, longitude: 16.1 },
    ],
    size,
  )
  const [sw, ne] = points as [(typeof points)[number], (typeof points)[number]]
  expect(ne.x).toBeGreaterThan(sw.x)
  expect(ne.y).toBeLessThan(sw.y)
  expect((ne.x - sw.x) / (sw.y - ne.y)).toBeCloseTo(Math.cos((48.05 * Math.PI) / 180), 3)
  expect(place(sw.x, sw.y).latitude).toBeCloseTo(48, 6)
  const fiji = project(
    [
      { id: 'w', latitude: -17, longitude: 179.9 },
      { id: 'e', latitude: -17, longitude: -179.9 },
    ],
    size,
  )
  expect((fiji.points[1]?.x as number) - (fiji.points[0]?.x as number)).toBeGreaterThan(0)
  expect(fiji.metresPerPixel).toBeLessThan(1_000)
  expect(project([], size).points).toEqual([])
})

test('arrow keys select the nearest point in a direction', () => {
  const points = [
    { id: 'a', x: 0, y: 0 },
    { id: 'b', x: 10, y: 1 },
    { id: 'c', x: 4, y: 30 },
    { id: 'd', x: 30, y: 0 },
  ]
  expect(neighbourOf(points, 'a', 'ArrowRight')).toBe('b')
  expect(neighbourOf(points, 'b', 'ArrowRight')).toBe('d')
  expect(neighbourOf(points, 'a', 'ArrowDown')).toBe('c')
  expect(neighbourOf(points, 'a', 'ArrowLeft')).toBeUndefined()
  expect(neighbourOf(points, 'gone', 'ArrowLeft')).toBe('a')
})

test('every point is in one hexagon, and a scale bar is round', () => {
  const points = Array.from({ length: 500 }, (_, n) => ({ id: `${n}`, x: (n * 37) % 400, y: (n * 91) % 300 }))
  const bins = hexagons(points, 14)
  expect(bins.flatMap(({ ids }) => ids).sort()).toEqual(points.map(({ id }) => id).sort())
  for (const { x, y, ids } of bins) {
    for (const id of ids) {
      const point = points[Number(id)] as { x: number; y: number }
      expect(Math.hypot(point.x - x, point.y - y)).toBeLessThanOrEqual(14.0001)
    }
  }
  const rows = [...new Set(bins.map(({ y }) => y))].sort((a, b) => a - b)
  for (const [at, y] of rows.entries()) if (at > 0) expect(y - (rows[at - 1] as number)).toBeCloseTo(1.5 * 14)
  expect(scaleBar(3.3, 100)).toMatchObject({ text: '200 m' })
  expect(scaleBar(130, 100)).toMatchObject({ text: '10 km' })
})

test('every command and field of the table has an input', () => {
  const listed = commandGroups().flatMap(({ commands }) => commands.map(({ name }) => name))
  expect(listed.toSorted()).toEqual(
    COMMAND_LIST.map(({ name }) => name)
      .filter((name) => name !== 'LOGIN')
      .toSorted(),
  )
  for (const { fields } of COMMAND_LIST) for (const spec of fields) expect(widgetOf(spec).as).toBeTruthy()
})

test('the hops of a run add up to the time in the browser, reported or not', () => {
  const hops = [
    { hop: 'control-plane', micros: 300 },
    { hop: 'network', micros: 700 },
    { hop: 'waiting', micros: null },
    { hop: 'searching', micros: null },
  ] as const
  const [plane, network] = hops
  const reported = [plane, network, { hop: 'waiting', micros: 5 }, { hop: 'searching', micros: 60 }] as const
  const staged = [
    ...[plane, network, { hop: 'waiting', micros: 5 }, { hop: 'planning', micros: 8 }],
    ...[
      { hop: 'examining', micros: 50 },
      { hop: 'writing', micros: 2 },
    ],
  ] as const
  const shown = (of: readonly Hop[]) => {
    const { way, node } = barsOf({ hops: [...of], totalMicros: 1_000 }, 2_500)
    return [way, node].map((bars) => bars.map(({ hop, micros }) => [hop, micros]))
  }
  const way = (node: number | null) => [
    ['browser', 1_500],
    ['control-plane', 300],
    ['network', 700],
    ['node', node],
  ]

  expect(shown(hops)).toEqual([way(null), []])
  expect(shown(reported)).toEqual([way(65), reported.slice(2).map(({ hop, micros }) => [hop, micros])])
  expect(shown(staged)).toEqual([way(65), staged.slice(2).map(({ hop, micros }) => [hop, micros])])
  // Browser clocks are coarse: never negative.
  expect(barsOf({ hops: [...hops], totalMicros: 1_000 }, 900).way[0]?.micros).toBe(0)
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect(spreadOf({ runs: hundred, failed: 0, wanted: 100 })).toEqual({ p50: 50, p99: 99, least: 1, most: 100 })
  expect(spreadOf({ runs: [], failed: 1, wanted: 1 })).toEqual({ p50: 0, p99: 0, least: 0, most: 0 })
  expect(spreadOf({ runs: [5, 1, 9, 3], failed: 0, wanted: 4 })).toEqual({ p50: 3, p99: 9, least: 1, most: 9 })
  expect(timesText({ runs: [500, 100, 900], failed: 1, wanted: 10 })).toBe(
    '3 of 10 runs, 1 failed: p50 500 µs · p99 900 µs · 100 µs to 900 µs',
  )
})

test('two results are compared by property: found by one of them only, or with another total', () => {
  const stays = (totals: { readonly [id: string]: number }) => ({
    command: 'SEARCHAVAIL',
    result: { properties: Object.entries(totals).map(([propertyId, total]) => ({ propertyId, days: [], total })) },
  })
  const hits = { command: 'SEARCHPROP', result: { propertyIds: ['a', 'd'] } }

  expect(comparedRows(stays({ a: 1, b: 2, c: 3 }), stays({ c: 3, b: 5, d: 4 }))).toEqual({
    differing: [
      { id: 'a', before: 1, now: false },
      { id: 'b', before: 2, now: 5 },
      { id: 'd', before: false, now: 4 },
    ],
    same: 1,
  })
  expect(comparedRows(stays({ a: 1 }), hits)).toEqual({ differing: [{ id: 'd', before: false, now: true }], same: 1 })
})

const choices = commandGroups().flatMap(({ commands }) => commands)

test('every command but the login is offered once', () => {
  expect(choices.map(({ name }) => name).sort()).toEqual(
    Object.keys(COMMANDS)
      .filter((name) => name !== 'LOGIN')
      .sort(),
  )
})

test('commands that change data are marked, and reads are not', () => {
  const isMarked = (command: QueryCommand) => choices.find(({ name }) => name === command)?.isWrite

  expect(['SETPROP', 'DECROOMAVL', 'DELPROP'].map((name) => isMarked(name as QueryCommand))).toEqual([true, true, true])
  expect(['SEARCHPROP', 'PROPEXIST', 'GETCODECS'].map((name) => isMarked(name as QueryCommand))).toEqual([
    false,
    false,
    false,
  ])
})

test('searches come first, and all that deletes comes last', () => {
  const groups = commandGroups()

  expect(groups.at(0)?.commands.map(({ name }) => name)).toEqual([
    'SEARCHPROP',
    'SEARCHAVAIL',
    'PRICECAL',
    'SEARCHFLEX',
  ])
  const names = choices.map(({ name }) => name)
  const deletes = names.filter((name) => name.startsWith('DEL'))
  expect(deletes.length).toBeGreaterThan(0)
  expect(names.slice(-deletes.length)).toEqual(deletes)
})

test('numbers are bounded by the table, else by their width', () => {
  const spec = { required: false, type: 3 } as const
  const widget = (fields: object) => widgetOf({ ...spec, name: 'x', ...fields } as never)

  expect(widget({ width: 'u8' })).toEqual({ as: 'number', min: 0, max: 255, step: 1 })
  expect(widget({ width: 'u32', min: 1, max: 9 })).toEqual({ as: 'number', min: 1, max: 9, step: 1 })
  expect(widget({ width: 'f64' })).toEqual({ as: 'number', min: -Number.MAX_VALUE, max: Number.MAX_VALUE, step: 'any' })
  expect(widget({ width: 'text' })).toEqual({ as: 'text' })
  expect(widget({ width: 'list' })).toEqual({ as: 'list' })
})
