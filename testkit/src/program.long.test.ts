import { expect, test } from 'vitest'
import { startProgram } from './program.ts'

const program = (source: string, env?: NodeJS.ProcessEnv) =>
  startProgram(['--eval', source], env === undefined ? {} : { env })

test('what a program prints on either stream is kept and can be waited for', async () => {
  const node = program(
    "console.log('port ' + process.env.PORT); console.error('warning'); setTimeout(() => {}, 60_000)",
    { PORT: '7' },
  )

  const [, port] = await node.printed(/^port (\d+)$/m)
  await node.printed(/warning/)
  expect(port).toBe('7')
  expect(node.output()).toContain('warning')

  expect(await node.stop()).toBe(null)
  await expect(node.printed(/^port/)).resolves.toBeDefined()
})

test('waiting for what a program never prints fails when it ends', async () => {
  const node = program("console.error('refused'); process.exitCode = 3")

  await expect(node.printed(/serving/)).rejects.toThrow(/^the program ended without \/serving\/:\nrefused/)
  expect(await node.ended).toBe(3)
})

test('a graceful stop lets the program end by itself', async () => {
  const node = program("process.on('SIGTERM', () => process.exit(5)); setInterval(() => {}, 1); console.log('up')")
  await node.printed(/up/)

  expect(await node.stop()).toBe(5)
})
