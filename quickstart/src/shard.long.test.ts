import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayOf, formatDay } from '@vacancy/shared'
import { takePort } from '@vacancy/testkit/free-port'
import { runVacancy } from '@vacancy/testkit/node'
import { afterAll, expect, test } from 'vitest'
import { filesOf, readRunning } from './platform/files.ts'
import { npmRunStartShard, type Started } from './testing/programs.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-start-shard-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = filesOf(join(folder, 'shard'))
const DIR = ['--dir', files.dir]
/** Other tests may run shards as well. */
const BLOCK = ['--block', String(20 + (process.pid % 180))]
const SMALL = ['--packages', '3000', '--days', '20']
const SHARD_MS_MAX = 300_000
/** As each node is shown: name, role, TCP address, HTTP address. */
const ROW = /^ +(n\d) +(leader|voter|learner) +(\S+):(\d+) +http:\/\/(\S+) +\d/gm
const STAYS_UP = /\nStop {6}Ctrl-C/

type Node = { name: string; role: string; tcp: string[]; api: string }

async function nodesOf(shard: Started): Promise<Node[]> {
  const { input } = await shard.printed(STAYS_UP)
  return [...input.matchAll(ROW)].map(([, name = '', role = '', host = '', port = '', api = '']) => ({
    name,
    role,
    tcp: ['--host', host, '--port', port],
    api,
  }))
}

const query = async (node: Node, ...args: string[]) => {
  const { code, stdout, stderr } = await runVacancy(['query', ...args, ...node.tcp, '--json'])
  return { code, output: code === 0 ? JSON.parse(stdout) : stderr }
}
const processOf = (name: string) => readRunning(files)?.processes[name] as number
const night = ['roomType=double', `date=${formatDay(dayOf(Date.now()) + 3)}`, 'propertyId=alp_000003']
const put = (node: Node, rooms: number) =>
  query(node, 'send', 'SETROOMPKG', ...night, `availability=${rooms}`, 'finalPrice=90')
const look = async (node: Node) => (await query(node, 'send', 'GETPROPROOMDAY', ...night)).output.availability

test(
  'a shard forms from the snapshot on two of three voters, survives the loss of its leader, and continues with its data on other addresses',
  async () => {
    const shard = npmRunStartShard(...DIR, ...SMALL, ...BLOCK)
    const nodes = await nodesOf(shard)
    const leader = nodes.find(({ role }) => role === 'leader') as Node
    const learner = nodes.find(({ role }) => role === 'learner') as Node

    expect(nodes.map(({ name }) => name)).toEqual(['n1', 'n2', 'n3', 'n4'])
    expect((await put(leader, 7)).code).toBe(0)
    expect((await put(learner, 8)).output).toContain('308: this node is not the leader')
    expect(statSync(files.tokenOf('admin')).mode & 0o077).toBe(0)

    process.kill(processOf(leader.name), 'SIGKILL')
    const [, next = ''] = await shard.printed(
      new RegExp(`${leader.name} {2}was ended by SIGKILL.*?^(n\\d) {2}leads`, 'ms'),
    )
    const heir = nodes.find(({ name }) => name === next) as Node
    const [before, written, after] = [await look(heir), await put(heir, 5), await look(heir)]
    await shard.printed(new RegExp(`${leader.name} {2}started again.*^${leader.name} {2}follows, up to date`, 'ms'))
    const token = ['--token-file', files.tokenOf('admin')]
    const transfer = () => runVacancy(['cluster', 'transfer', leader.name, '--wait', '--node', learner.api, ...token])
    let moved = await transfer()
    // A node that has just restarted is refused as a target until the leader has received its messages for a while.
    for (let tries = 0; moved.code !== 0 && tries < 20; tries++) moved = await transfer()
    const kept = await look(leader)
    const second = await npmRunStartShard(...DIR).ended
    shard.signal('SIGINT')
    const stopped = await shard.ended

    expect({ before, code: written.code, after, kept }).toEqual({ before: 7, code: 0, after: 5, kept: 5 })
    expect(moved).toMatchObject({ code: 0, stdout: `transfer to ${leader.name}: done\n` })
    expect(second).toMatchObject({ code: 65, stderr: expect.stringContaining('a platform is running in') })
    expect(stopped.stdout).toContain('2 of 3 voters are up, the shard continues')
    expect(stopped.stdout).toMatch(/^n3 {2}not yet: .*\n(.*\n)*n3 {2}follows, up to date$/m)
    expect(stopped).toMatchObject({ code: 0, stderr: '' })

    // Another process may hold the port; it is taken in both cases.
    const taken = await takePort(7777).catch(() => undefined)
    const again = npmRunStartShard(...DIR, '--one-address')
    const [first] = await nodesOf(again)
    const stays = await look(first as Node)
    again.signal('SIGTERM')
    taken?.close()
    const { code, stdout } = await again.ended

    expect(stays).toBe(5)
    expect(stdout).not.toContain('Making sample data')
    expect(stdout).toContain('127.0.0.1:7777 is taken: trying other addresses.')
    expect(code).toBe(0)
  },
  SHARD_MS_MAX,
)
