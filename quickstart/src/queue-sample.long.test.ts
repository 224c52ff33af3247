import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '@vacancy/testkit/program'
import { expect, test } from 'vitest'
import { VACANCY } from './launch.ts'
import { runSample, SAMPLE_TOPICS } from './queue-sample.ts'

test('sample jobs are submitted, processed, and fail in one topic; a second start continues', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-queue-sample-'))
  const authFile = join(dir, 'auth.yml')
  const roles = ['producer', 'consumer', 'monitoring']
  writeFileSync(authFile, `tokens:\n${roles.map((role) => `  - { token: ${role}-token, role: ${role} }\n`).join('')}`)
  const flags = ['--listen-port', '0', '--data-dir', join(dir, 'data'), '--auth-file', authFile]
  const program = startProgram([VACANCY, 'queue', 'serve', ...flags])
  try {
    const [, url = ''] = await program.printed(/^serving: (\S+)$/m)
    const tokens = { url, producerToken: 'producer-token', consumerToken: 'consumer-token' }
    const statsOf = async (topic: string) => {
      const response = await fetch(`${url}/api/v1/queue/topics/${topic}/stats`, {
        headers: { authorization: 'Bearer monitoring-token' },
      })
      return (await response.json()) as { totals?: { acked: number; nacked: number } }
    }
    for (let start = 1; start <= 2; start++) {
      const stopping = new AbortController()
      const running = runSample(tokens, stopping.signal)
      for (const { topic } of SAMPLE_TOPICS)
        await expect
          .poll(async () => (await statsOf(topic)).totals?.acked ?? 0, { timeout: 20_000 })
          .toBeGreaterThanOrEqual(start)
      if (start === 1)
        await expect
          .poll(async () => (await statsOf('price-alerts')).totals?.nacked ?? 0, { timeout: 20_000 })
          .toBeGreaterThan(0)
      stopping.abort()
      await running
    }
  } finally {
    program.signal('SIGKILL')
    await program.ended
    rmSync(dir, { recursive: true })
  }
}, 240_000)
