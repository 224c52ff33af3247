import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { QUEUE_METRICS, QUEUE_ROLES } from '@vacancy/queue'
import { SERVE_SCHEMA } from '@vacancy/queue/config'
import { EXIT } from '@vacancy/shared'
import {
  CLOSE_CODES,
  CONFIRM_RESULTS,
  CONTROL_ROUTES,
  consumerMessage,
  DEAD_REASONS,
  JOB_FAULTS,
  JOB_LIMITS,
  JOB_STATES,
  MESSAGE_FAULTS,
  QUEUE_ERRORS,
  serverMessage,
  topicConfig,
} from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { CONTROL_SCHEMA, loadControlConfig } from './config.ts'
import { pages, QUEUE_PAGE_ROUTES } from './docs.ts'
import { CONTROL_METRICS } from './metrics.ts'

const [PAGE, QUEUE_PAGE] = ['control-plane.md', 'queue.md'].map((name) =>
  readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8'),
) as [string, string]

test.each([
  ['control-plane-reference.md', CONTROL_ROUTES],
  ['queue-reference.md', QUEUE_PAGE_ROUTES],
])('%s lists every path with its methods and who may use them', (file, routes) => {
  const lines = pages()[file]?.split('\n') ?? []
  for (const [name, { access }] of Object.entries(routes)) {
    const [method, path] = name.replace(' /api/v1/', ' …/').split(' ')
    expect(lines.find((line) => line.startsWith(`| \`${path}\` |`))).toMatch(
      new RegExp(`${method} (?:[A-Z]+ )*${access}`),
    )
  }
})

test.each([
  ['control-plane-reference.md', [CONTROL_SCHEMA, CONTROL_METRICS]],
  ['queue-reference.md', [SERVE_SCHEMA, QUEUE_METRICS]],
])('%s lists every key and metric', (file, tables) => {
  const { [file]: page, 'queue-reference.md': queue } = pages()
  for (const name of tables.flatMap((table) => Object.keys(table)))
    expect(`${page}${queue?.replaceAll('\n| `', '\n| `queue_')}`).toContain(`\`${name}\``)
})

test('every row of a table has as many cells as its header', () => {
  for (const page of [...Object.values(pages()), PAGE, QUEUE_PAGE])
    for (const block of page.split('\n\n').filter((block) => block.startsWith('|'))) {
      const cells = block
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/(?<!\\)\|/).length)
      expect(new Set(cells).size, block).toBe(1)
    }
})

test('the page for operators shows valid configuration files and correct exit codes', () => {
  const yaml = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] as string)
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-docs-'))
  const [whole = '', signOn = '', secure = '', proxied = ''] = yaml
  writeFileSync(join(folder, 'token'), 'secret')

  writeFileSync(join(folder, 'a.yml'), whole.replaceAll(/\/run\/secrets\/[\w-]+/g, join(folder, 'token')))
  expect(loadControlConfig({ file: join(folder, 'a.yml') }).values.nodes.length).toBe(2)
  const valuesOf = (text: string) => {
    writeFileSync(join(folder, 'b.yml'), text)
    return loadControlConfig({ file: join(folder, 'b.yml') }).values
  }
  expect(valuesOf(signOn).oidcRoles).toEqual(['hotel-ops=operator', 'hotel-admins=admin'])
  expect(valuesOf(secure)).toMatchObject({ tlsCert: '/etc/ssl/vacancy.pem', tlsKey: '/etc/ssl/vacancy.key' })
  expect(valuesOf(proxied).trustProxy).toEqual(['127.0.0.1'])
  for (const code of [EXIT.ok, EXIT.failure, EXIT.usage, EXIT.bind]) expect(PAGE).toContain(`\n| ${code} | `)
})

test('the page of the queue has every error with its status, close code, topic setting with its default, result and reason', () => {
  for (const [code, status] of Object.entries(QUEUE_ERRORS))
    expect(QUEUE_PAGE).toContain(`\n| \`${code}\` | ${status} | `)
  for (const code of Object.values(CLOSE_CODES)) expect(QUEUE_PAGE).toContain(`\n| ${code} | `)
  for (const [key, value] of Object.entries(topicConfig.parse({})))
    expect(QUEUE_PAGE).toContain(`\n| \`${key}\` | ${String(value)} | ${rangeOf(key)} | `)
  for (const role of QUEUE_ROLES) expect(QUEUE_PAGE).toContain(`\n| \`${role}\` | `)
  for (const state of JOB_STATES) expect(QUEUE_PAGE).toContain(`\n| \`${state}\` | `)
  for (const action of serverMessage.shape.action.options) expect(QUEUE_PAGE).toContain(`\n| \`${action}\` | `)
  for (const { shape } of consumerMessage.options) expect(QUEUE_PAGE).toContain(`{"action":"${shape.action.value}"`)
  for (const word of [...CONFIRM_RESULTS, ...MESSAGE_FAULTS, ...JOB_FAULTS, ...DEAD_REASONS])
    expect(QUEUE_PAGE).toContain(`\`${word}\``)
})

/** As the table of topic settings shows it. */
function rangeOf(key: string): string {
  const field = topicConfig.shape[key as keyof typeof topicConfig.shape].unwrap()
  return 'minValue' in field ? `${field.minValue} to ${field.maxValue}` : 'true or false'
}

test('limits and defaults in the text of that page are those of the code, and metrics exist', () => {
  const { acksPerMessage, consumerNameMax, errorTextMax, finishedShownMax, jobIdBytesMax, listedMax, movedMax } =
    JOB_LIMITS
  for (const text of [
    `up to ${acksPerMessage.toLocaleString('en-US')} jobs`,
    `at most ${consumerNameMax} characters`,
    `cut to ${errorTextMax.toLocaleString('en-US')} characters`,
    `the last ${finishedShownMax.toLocaleString('en-US')} of a topic`,
    `1 to ${jobIdBytesMax} bytes without control characters`,
    `Up to ${listedMax} ids are listed`,
    `up to ${movedMax.toLocaleString('en-US')} jobs a request`,
    `\`ack_flush_ms\` (${SERVE_SCHEMA.ack_flush_ms.default} ms)`,
    `\`heartbeat_ms\` (${SERVE_SCHEMA.heartbeat_ms.default / 1000} s)`,
    `\`default_prefetch\` (${SERVE_SCHEMA.default_prefetch.default})`,
    `\`max_lease_factor\` (${SERVE_SCHEMA.max_lease_factor.default})`,
    `\`producer_wait_ms\` (${SERVE_SCHEMA.producer_wait_ms.default / 1000} s)`,
    `\`shutdown_grace_ms\` (${SERVE_SCHEMA.shutdown_grace_ms.default / 1000} s)`,
    `within ${SERVE_SCHEMA.ws_init_timeout_ms.default / 1000} s`,
    `More than ${SERVE_SCHEMA.ws_max_errors.default} of`,
  ])
    expect(QUEUE_PAGE.replaceAll(/\s+/g, ' ')).toContain(text)
  const metrics = [...QUEUE_PAGE.matchAll(/vacancy_queue_[a-z_]+/g)].map(([name]) => name)
  for (const name of metrics) expect(Object.keys(QUEUE_METRICS)).toContain(name)
})
