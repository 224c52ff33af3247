import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AssertionError } from '../assert.ts'
import { turnableClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import { createReadiness, exitCodeOf } from './process.ts'

let folder: string

// Real processes: signals and exit codes exist nowhere else. The first argument selects the behaviour.
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-process-'))
  writeFileSync(
    path.join(folder, 'program.ts'),
    `import { createLogger, runProgram, runCommand, defineCommand } from ${JSON.stringify(path.join(import.meta.dirname, 'index.ts'))}
     import { assert, VacancyError } from ${JSON.stringify(path.join(import.meta.dirname, '../index.ts'))}
     const how = process.argv[2]
     const log = createLogger({ level: 'info', format: 'json', component: 'test' })
     const forever = new Promise<void>(() => {})
     const command = defineCommand({ name: 'test', component: 'test', summary: 'Lives.', flags: {}, async run() {
       await runProgram({
         async start(life) {
           setInterval(() => {}, 1000)
           if (how === 'start fails') throw new VacancyError('port_taken', { address: '127.0.0.1:80', reason: 'EACCES' })
           if (how === 'start fails, stop hangs') throw new VacancyError('port_taken', { address: 'a', reason: 'b' })
           if (how === 'crash') setImmediate(() => assert(false, 'all is well'))
           if (how === 'rejection') setImmediate(() => void Promise.reject(new VacancyError('corrupt_data', { file: 'f', offset: 1, reason: 'r' })))
           if (how === 'stops itself') setImmediate(() => life.stop({ code: 75, reason: 'cores changed' }))
           if (how === 'slow start') { life.stopping.addEventListener('abort', () => console.log('start gives up')); console.log('up'); await forever }
         },
         async stop(why) {
           console.log('closing: ' + why.reason)
           if (how.startsWith('stop hangs') || how === 'start fails, stop hangs') await forever
           if (how === 'stop fails') throw new VacancyError('disk_failed', { operation: 'sync', file: 'f', reason: 'EIO' })
           console.log('closed')
         },
         reload() { if (how === 'reload fails') throw new Error('no'); console.log('reloaded') },
       }, { log, drainMs: how.includes('hangs') && !how.includes('twice') ? 200 : 10_000 })
       console.log('up')
       return undefined
     } })
     await runCommand(command, [])`,
  )
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Seen = { output: string; child: ChildProcess }

function program(
  how: string,
  onOutput: (seen: Seen) => void = () => {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [path.join(folder, 'program.ts'), how])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      onOutput({ output, child })
    })
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

/** Does something once, as soon as a text was printed. */
function when(text: string, act: (child: ChildProcess) => void): (seen: Seen) => void {
  let isDone = false
  return ({ output, child }) => {
    if (isDone || !output.includes(text)) return
    isDone = true
    act(child)
  }
}

test.each(['SIGTERM', 'SIGINT'] as const)('%s shuts down gracefully and exits 0', async (signal) => {
  const { code, output } = await program(
    'well',
    when('up\n', (child) => child.kill(signal)),
  )

  expect(code).toBe(0)
  // Lines of the log may come between: it is another stream.
  expect(output).toMatch(new RegExp(`^closing: ${signal}$[\\s\\S]*^closed$`, 'm'))
})

test('one Ctrl-C that arrives twice counts once', async () => {
  const { code, output } = await program(
    'well',
    when('up\n', (child) => {
      child.kill('SIGINT')
      child.kill('SIGINT')
    }),
  )

  expect([code, output.includes('closed')]).toEqual([0, true])
})

test('a second signal ends a slow shutdown immediately', async () => {
  let repeat: NodeJS.Timeout | undefined
  const { code, output } = await program(
    'stop hangs, signalled twice',
    when('up\n', (child) => {
      repeat = setInterval(() => child.kill('SIGTERM'), 20)
    }),
  )
  clearInterval(repeat)

  expect(code).toBe(1)
  expect(output).toContain('second stop signal')
  expect(output).not.toContain('shutdown timed out')
})

test('a shutdown that misses its deadline exits with code 1', async () => {
  const { code, output } = await program(
    'stop hangs',
    when('up\n', (child) => child.kill('SIGTERM')),
  )

  expect(code).toBe(1)
  expect(output).toContain('shutdown timed out')
})

test('a program that stops itself exits with the code it names', async () => {
  const { code, output } = await program('stops itself')

  expect([code, output.includes('closed')]).toEqual([75, true])
})

test('an error while stopping gives its exit code', async () => {
  expect(
    (
      await program(
        'stop fails',
        when('up\n', (child) => child.kill('SIGTERM')),
      )
    ).code,
  ).toBe(70)
})

test('a failed start closes open resources and prints the reason', async () => {
  const { code, output } = await program('start fails')

  expect(code).toBe(69)
  expect(output).toMatch(/^closing: the start failed$[\s\S]*^closed$/m)
  expect(output).toContain('test: Cannot listen on 127.0.0.1:80: EACCES.\n')
})

test('a start that fails ends even when closing hangs', async () => {
  expect((await program('start fails, stop hangs')).code).toBe(69)
})

test('a signal during the start stops it', async () => {
  const { code, output } = await program(
    'slow start',
    when('up\n', (child) => child.kill('SIGTERM')),
  )

  expect(code).toBe(0)
  expect(output).toContain('start gives up\n')
})

test.each([
  ['crash', 72, 'all is well'],
  ['rejection', 71, 'f is damaged at byte 1'],
])('an uncaught error ends the process immediately: %s', async (how, code, words) => {
  const end = await program(how)

  expect(end.code).toBe(code)
  expect(end.output).toContain(words)
  expect(end.output).not.toContain('closing')
})

test('SIGHUP reloads, and a failed reload changes nothing', async () => {
  const well = program('well', (seen) => {
    when('up\n', (child) => child.kill('SIGHUP'))(seen)
    when('reloaded\n', (child) => child.kill('SIGTERM'))(seen)
  })
  const badly = program('reload fails', (seen) => {
    when('up\n', (child) => child.kill('SIGHUP'))(seen)
    when('reload failed, keeping the previous settings', (child) => child.kill('SIGTERM'))(seen)
  })

  expect((await well).code).toBe(0)
  expect((await badly).code).toBe(0)
})

test('exit codes are those of the error table', () => {
  expect(exitCodeOf(new AssertionError('no'))).toBe(72)
  expect(exitCodeOf(new VacancyError('invalid_config', { reason: 'no' }))).toBe(64)
  expect(exitCodeOf(new Error('no'))).toBe(1)
  expect(exitCodeOf('no')).toBe(1)
})

test('readiness has reasons with their times, and the time of its last change', () => {
  const clock = turnableClock(Date.parse('2026-11-20T00:00:00Z'))
  const readiness = createReadiness(clock)

  readiness.set('loading', 'reads the snapshot')
  clock.advance(1_000)
  readiness.set('loading', 'replays the log')
  readiness.set('disk', 'is full')

  expect(readiness.read()).toEqual({
    ready: false,
    since: '2026-11-20T00:00:00.000Z',
    reasons: [
      { name: 'loading', message: 'replays the log', since: '2026-11-20T00:00:00.000Z' },
      { name: 'disk', message: 'is full', since: '2026-11-20T00:00:01.000Z' },
    ],
  })
  clock.advance(1_000)
  readiness.set('loading', '')
  readiness.set('disk', '')
  expect(readiness.read()).toEqual({ ready: true, since: '2026-11-20T00:00:02.000Z', reasons: [] })
})
