import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dayOf, formatDay } from '@vacancy/shared'
import { loadCodecFile } from '@vacancy/shared/node'
import { COMMAND_LIST } from '@vacancy/shared/wire'
import { takePort } from '@vacancy/testkit/free-port'
import { type NodeProcess, removeFolder, runVacancy, startNodeProcess, temporaryFolder } from '@vacancy/testkit/node'
import { startProgram } from '@vacancy/testkit/program'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fieldsOf } from './query.ts'

const ROOT = new URL('../../', import.meta.url)
const BENCH = fileURLToPath(new URL('bench/src/cli.ts', ROOT))
const folder = temporaryFolder()
const today = dayOf(Date.now())
const tomorrow = formatDay(today + 1)
let node: NodeProcess

/** A node with a region of the Alps. */
beforeAll(async () => {
  const csv = join(folder, 'csv')
  const size = ['--packages', '10000', '--days', '20', '--seed', '1', '--segments', '4', '--from', formatDay(today)]
  await startProgram([BENCH, 'sample', '--shape', 'region', ...size, '--out', csv]).ended
  await runVacancy(['build-snapshot', '--shard-id', 's1', '--input-path', csv, '--output-path', join(folder, 'data')])
  node = await startNodeProcess({ folder, codecs: loadCodecFile(join(csv, 'codecs.yml'), 'codecs').names })
})

afterAll(async () => {
  await node.stop()
  removeFolder(folder)
})

const query = (...args: string[]) => runVacancy(['query', ...args, '--port', String(node.tcpPort)])

test('segments are printed as a table', async () => {
  const { code, stdout } = await query('segments')

  expect(code).toBe(0)
  expect(stdout).toMatch(/^segment +properties\ndolomites +\d+\nsavoy +\d+\ntyrol +\d+\nvalais +\d+\n\n4 segments in/)
})

test('a search by dates and one by first night and nights give the same properties', async () => {
  const room = ['search', '--segment', 'valais', '--room-type', 'one_bedroom', '--json']

  const byDates = await query(...room, '--dates', `${tomorrow},${formatDay(today + 2)}`)
  const byNights = await query(...room, '--from', tomorrow, '--nights', '2')
  const fromToday = await query(...room, '--from', '+1', '--nights', '2')

  const { numDays, properties } = JSON.parse(byDates.stdout)
  expect(numDays).toBe(2)
  expect(properties.length).toBeGreaterThan(0)
  expect(JSON.parse(byNights.stdout)).toEqual({ numDays, properties })
  expect(JSON.parse(fromToday.stdout)).toEqual({ numDays, properties })
})

test('pages of an order follow each other, and end', async () => {
  const search = [
    'search',
    '--segment',
    'tyrol',
    '--from',
    '+1',
    '--nights',
    '2',
    '--any-room-type',
    '--order',
    'total',
  ]
  const all = JSON.parse((await query(...search, '--compact', '--json')).stdout)

  const { stdout } = await query(...search, '--limit', '2', '--want', 'position')
  const [, , matches, cursor = ''] = /(\n)\n2 of ([\d,]+) properties, more with --page (\S+)/.exec(stdout) ?? []
  const rest = await query(...search, '--limit', '200', '--page', cursor, '--json')

  expect(stdout).toMatch(
    /^property +nights +rooms left +total +a night +rate features +latitude +longitude +room type\n/,
  )
  expect(Number(matches?.replaceAll(',', ''))).toBe(all.page.matches)
  expect(all.properties.length).toBeGreaterThan(2)
  const { properties, page } = JSON.parse(rest.stdout)
  const ids = (hits: { propertyId: string }[]) => hits.map(({ propertyId }) => propertyId)
  expect(ids(properties).slice(0, 198)).toEqual(ids(all.properties).slice(2))
  expect(page.more).toBe(properties.length + 2 < page.matches)
  const wrong = await query(...search.with(-1, 'price'))
  expect(wrong.code).toBe(64)
  expect(wrong.stderr).toContain('--order must be total, total-down, distance, stars or id, got "price"')
})

test('counts are printed below the page, each as many as a search for its value finds', async () => {
  const search = ['search', '--segment', 'tyrol', '--room-type', 'double', '--from', '+1', '--nights', '2']
  const matches = async (...filters: string[]) =>
    JSON.parse((await query(...search, ...filters, '--order', 'id', '--limit', '1', '--json')).stdout).page.matches
  const all = await matches()
  const [box, facets] = ['--south -90 --west -180 --north 90 --east 180'.split(' '), ['--facets', 'stars,total']]

  const { stdout } = await query(
    ...search,
    ...box,
    ...facets,
    '--total-bounds',
    '250',
    '--cells',
    '1,1',
    '--limit',
    '1',
  )

  const [, stars = '', below, above, cell] =
    /\nstars: (.+)\ntotal: 0 to 249 \((\d+)\), 250 to … \((\d+)\)\ncell 0, 0: (\d+), from \d+, around [\d.]+, [\d.]+\n1 /.exec(
      stdout,
    ) ?? []
  expect([Number(below) + Number(above), Number(cell)], stdout).toEqual([all, all])
  const counts = stars.split(', ').map((entry) => /^(\d) \((\d+)\)$/.exec(entry)?.slice(1) ?? [])
  expect(counts.length).toBeGreaterThan(1)
  for (const [value = '', found] of counts) expect(await matches('--stars', value), value).toBe(Number(found))
})

test('a calendar has the lowest total of a search from each day', async () => {
  const room = ['--segment', 'tyrol', '--room-type', 'double', '--nights', '2']

  const { stdout } = await query('calendar', ...room, '--from', '+1', '--to', '+3')

  const lines = stdout.split('\n')
  expect(lines[0]).toMatch(/^arrival +day +total +properties +cheapest$/)
  for (const [n, line] of lines.slice(1, 4).entries()) {
    const first = ['search', ...room, '--from', `+${n + 1}`, '--order', 'total', '--limit', '1', '--json']
    const { properties, page } = JSON.parse((await query(...first)).stdout)
    const [hit] = properties
    expect(line.split(/ +/)).toEqual([
      formatDay(today + 1 + n),
      expect.stringMatching(/^[A-Z][a-z]{2}$/),
      ...[String(hit.total), String(page.matches), hit.propertyId],
    ])
  }
  expect(stdout).toMatch(/\n3 arrival days in /)
})

test('every filter of a search is sent to the node and narrows the result', async () => {
  const room = ['search', '--segment', 'tyrol', '--room-type', 'double', '--from', tomorrow, '--json']
  const filters = ['--price', '160', '--features', 'includes_breakfast', '--type', 'hotel', '--amenities', 'wifi']
  const place = ['--latitude', '47.2692', '--longitude', '11.4041', '--radius', '100000']

  const all = JSON.parse((await query(...room, '--limit', '200')).stdout)
  const { code, stdout, stderr } = await query(...room, ...filters, ...place, '--rooms', '1', '--explain')
  const { properties, explain } = JSON.parse(stdout)

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(explain.rowsExamined).toBeGreaterThan(0)
  expect(properties.length).toBeLessThan(all.properties.length)
  for (const { days } of properties) {
    expect(days[0].finalPrice).toBeLessThanOrEqual(160)
    expect(days[0].rateFeatures).toContain('includes_breakfast')
  }
})

test('night shows the package that send wrote', async () => {
  const night = ['propertyId=alp_000001', `date=${tomorrow}`]
  const room = (await query('rooms', '--property', 'alp_000001', '--json')).stdout
  const [roomType] = JSON.parse(room).roomTypes

  const set = await query(
    ...['send', 'SETROOMPKG', ...night, `roomType=${roomType}`],
    ...['availability=7', 'finalPrice=123', 'rateFeatures=free_wifi,no_prepayment'],
  )
  const { stdout } = await query('night', '--property', 'alp_000001', '--room-type', roomType, '--date', tomorrow)

  expect(set.code).toBe(0)
  expect(stdout).toMatch(new RegExp(`alp_000001 +${tomorrow} +7 +123 +free_wifi no_prepayment\n`))
})

test.each([
  [['dates', '--property', 'alp_000001', '--room-type', 'nowhere'], 1, 'NOT_FOUND: '],
  [['send', 'PROPEXST', 'propertyId=a'], 64, 'did you mean PROPEXIST?'],
  [['send', 'PROPEXIST', 'property=a'], 64, 'PROPEXIST has no field property; it has propertyId'],
  [['send', 'PROPEXIST'], 64, 'propertyId is required'],
  [['send', 'LOGIN', 'token=a'], 64, '--token'],
  [['search', '--segment', 'tyrol', '--room-type', 'double'], 64, '--dates DATE,DATE or --from DATE --nights N'],
  [['search', '--segment', 'tyrol', '--room-type', 'double', '--dates', '2026-13-01'], 1, 'VALIDATION_ERROR: '],
  [['properties', '--segment', 'tyrol', '--latitude', 'north'], 64, '--latitude: "north" is not a number'],
  [['serch'], 64, 'unknown command serch'],
])('%j ends with exit code %i and a message', async (args, code, message) => {
  const ended = await query(...args)

  expect(ended).toMatchObject({ code, stdout: '' })
  expect(ended.stderr).toContain(message)
})

test('a refused connection is reported', async () => {
  const { port, close } = await takePort()
  close()

  const { code, stderr } = await runVacancy(['query', 'segments', '--port', String(port)])

  expect(code).toBe(1)
  expect(stderr).toContain(`No connection to 127.0.0.1:${port}: nothing listens there (is the node running?)`)
})

test('the help lists every subcommand, and the list of commands all of the protocol except LOGIN', async () => {
  const help = await runVacancy(['query', '--help'])
  const commands = await runVacancy(['query', 'commands'])

  for (const word of ['search', 'properties', 'segments', 'codecs', 'rooms', 'dates', 'night', 'send', 'commands']) {
    expect(help.stdout).toMatch(new RegExp(`^ {2}${word} `, 'm'))
  }
  for (const { name } of COMMAND_LIST) expect(commands.stdout.includes(`${name} `)).toBe(name !== 'LOGIN')
})

test('values are parsed by the type of their field', () => {
  expect(fieldsOf('SEARCHAVAIL', ['segment=s', 'roomType=a=b', 'dates=2026-12-01,2026-12-02', 'limit=5'])).toEqual({
    segment: 's',
    roomType: 'a=b',
    dates: ['2026-12-01', '2026-12-02'],
    limit: 5n,
  })
  expect(fieldsOf('SETROOMPKG', ['rateFeatures='])).toEqual({ rateFeatures: [] })
})
