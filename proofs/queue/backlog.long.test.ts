import { expect, it } from 'vitest'
import { slowBacklog } from './backlog.ts'

it.each([
  { what: 'adapts', prefetch: undefined },
  { what: 'is 1,000', prefetch: 1_000 },
])(
  'a slow consumer before a backlog causes no dead job and no second delivery; its prefetch $what',
  {
    timeout: 240_000,
  },
  async ({ prefetch }) => {
    const options = { jobs: 10_000, seconds: 3, jobMs: 10, consumers: 50, prefetch }
    const { delivered, dead, twice, slow, inHand } = await slowBacklog(options)
    expect({ delivered, dead, twice }).toEqual({ delivered: 10_000, dead: 0, twice: [] })
    expect(slow).toBeGreaterThan(0)
    expect(inHand).toBeGreaterThan(0)
  },
)
