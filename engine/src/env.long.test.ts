import { spawn } from 'node:child_process'
import { createLogger } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { createEnv } from './env.ts'

test('a zombie process does not keep the lock of its folder (it used to)', async () => {
  const { host } = createEnv(createLogger({ level: 'error', format: 'json', component: 'test', id: '' }))
  // The second is a child of the first, which never reaps it.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const child = Number(
      await new Promise<string>((resolve) => parent.stdout.once('data', (text) => resolve(`${text}`))),
    )

    await expect.poll(() => host.startOf(child), { timeout: 30_000 }).toBeUndefined()
    expect(host.startOf(parent.pid as number)).toMatch(/^\d+$|^unknown$/)
  } finally {
    parent.kill('SIGKILL')
  }
})
