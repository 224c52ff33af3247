/** One directory, one process: whatever namespaces two programs are in. */

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  launch,
  type Running,
  removeFolder,
  runNodeToEnd,
  startNodeProcess,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { afterEach, beforeEach, expect, test } from 'vitest'

const TRIES = 200
const AT_ONCE = 5
const SPACES = ['pid', 'mount', 'host', 'boot'] as const
type Spaces = readonly (typeof SPACES)[number][]

let folder = ''
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => removeFolder(folder))

/** A command prefix that runs a program in its own namespaces of these kinds. */
function wrapperOf(spaces: Spaces): string[] {
  if (spaces.length === 0) return []
  const flags = [
    ...(spaces.includes('pid') ? ['--pid', '--fork', '--kill-child', '--mount-proc'] : []),
    ...(spaces.includes('mount') || spaces.includes('boot') ? ['--mount'] : []),
    ...(spaces.includes('host') ? ['--uts'] : []),
  ]
  const bootId = join(folder, 'boot-id')
  writeFileSync(bootId, '00000000-0000-4000-8000-000000000000\n')
  const steps = [
    ...(spaces.includes('host') ? ['hostname another-container'] : []),
    ...(spaces.includes('boot') ? [`mount --bind ${bootId} /proc/sys/kernel/random/boot_id`] : []),
    'exec "$@"',
  ]
  return ['unshare', ...flags, 'sh', '-c', steps.join(' && '), 'sh']
}

/** All sets of namespaces that this machine allows; without root only the empty one. */
function combinations(): Spaces[] {
  const all = Array.from({ length: 2 ** SPACES.length }, (_, set) => SPACES.filter((_kind, at) => set & (1 << at)))
  return all.filter((spaces) => {
    const [command = 'true', ...rest] = wrapperOf(spaces)
    return spawnSync(command, [...rest, 'true']).status === 0
  })
}

const contentOf = (directory: string) =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.startsWith('wal'))
    .sort()

test(`of two nodes on one directory the second ends with 65 and changes nothing: ${TRIES} tries in all namespaces`, async () => {
  const spaces = combinations()
  let tries = 0
  for (const first of spaces) {
    const node = await startNodeProcess({ folder, wrapper: wrapperOf(first) })
    const before = [contentOf(node.dataDir), readFileSync(join(node.dataDir, 'LOCK'), 'utf8')]
    for (let left = Math.ceil(TRIES / spaces.length); left > 0; left -= AT_ONCE) {
      const ends = await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, left) }, async (_, n) => {
          const second = spaces[tries++ % spaces.length] as Spaces
          // An export takes the directory as a node does, and starts sooner.
          const args = ['export', node.dataDir, '--output-path', join(folder, 'out')]
          const wrapper = wrapperOf(second)
          const running = n === 0 ? await runNodeToEnd({ folder, wrapper }) : await endOf(launch(args, { wrapper }))
          return { second, ...running }
        }),
      )
      for (const { code, output, second } of ends) {
        expect(code, `${first} then ${second}: ${output}`).toBe(65)
        expect(output).toContain(`${node.dataDir} is in use by another process`)
      }
    }
    expect([contentOf(node.dataDir), readFileSync(join(node.dataDir, 'LOCK'), 'utf8')]).toEqual(before)
    await node.kill()
  }
  expect(tries).toBeGreaterThanOrEqual(TRIES)
  // The kernel gave the lock of the killed one up.
  const next = await startNodeProcess({ folder })
  expect((await next.stop()).code).toBe(0)
}, 1_800_000)

async function endOf({ ended, output }: Running): Promise<{ readonly code: number | null; readonly output: string }> {
  const { code } = await ended
  return { code, output: output() }
}

test('a node whose lock was deleted ends with 65 before the next one opens the folder', async () => {
  const node = await startNodeProcess({ folder, wrapper: wrapperOf(combinations().at(-1) as Spaces) })
  let hasEnded = false
  void node.ended.then(() => {
    hasEnded = true
  })

  rmSync(join(node.dataDir, 'lock.db'))
  const next = await startNodeProcess({ folder })

  expect(hasEnded).toBe(true)
  expect(node.output()).toContain('lock.db was deleted or replaced')
  expect((await node.ended).code).toBe(65)
  await next.stop()
})

test('a node whose folder was deleted ends with 65 and says so', async () => {
  const node = await startNodeProcess({ folder })

  rmSync(node.dataDir, { recursive: true })

  expect((await node.ended).code).toBe(65)
  expect(node.output()).toContain('lock.db was deleted or replaced')
})

test.each([
  ['registry', ['registry', '--port', '0', '--state-file', 'DIR/registry.json', '--codecs-path', 'DIR/codecs.yml']],
  ['queue', ['queue', 'serve', '--listen-port', '0', '--data-dir', 'DIR/queue', '--auth-file', 'DIR/queue-auth.yml']],
  ['control plane', ['control-plane', '--listen-port', '0', '--data-dir', 'DIR/control', '--web=false']],
])('a second %s on one directory is refused with 65, in another container too', async (_name, args) => {
  writeFileSync(join(folder, 'codecs.yml'), 'rate_features:\n  - breakfast\n')
  const given = args.map((arg) => arg.replace('DIR', folder))
  const first = launch(given)
  try {
    await expect.poll(() => first.output(), { timeout: 40_000 }).toMatch(/serving/)
    const second = launch(given, { wrapper: wrapperOf(combinations().at(-1) as Spaces) })

    expect((await second.ended).code, second.output()).toBe(65)
    expect(second.output()).toMatch(/in use by another|database is locked/)
  } finally {
    first.child.kill()
    await first.ended
  }
})
