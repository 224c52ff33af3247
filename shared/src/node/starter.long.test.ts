import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { isRunning } from './starter.ts'

test('a zombie process used to count as running', async () => {
  // The second is a child of the first, which never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const child = Number(
      await new Promise<string>((resolve) => parent.stdout.once('data', (text) => resolve(`${text}`))),
    )

    await expect.poll(() => isRunning(child), { timeout: 30_000 }).toBe(false)
    expect(isRunning(parent.pid as number)).toBe(true)
    expect(isRunning(process.pid)).toBe(true)
  } finally {
    parent.kill('SIGKILL')
  }
})
