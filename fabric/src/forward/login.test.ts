import { turnableClock } from '@vacancy/shared'
import { createLogger } from '@vacancy/shared/node'
import { hashToken, type TokenHash } from '@vacancy/shared/tokens'
import { expect, test } from 'vitest'
import { loginRule } from './service.ts'

const log = createLogger({ level: 'error', format: 'text', component: 'test' })
const NOW_MS = Date.UTC(2027, 0, 1)
const ENDS_MS = Date.UTC(2027, 0, 31)

test('an open connection has what the auth file gives its token, and is refused by date after its end', () => {
  const clock = turnableClock(NOW_MS)
  const token = (changes: Partial<TokenHash> = {}): TokenHash => ({
    ...{ hash: hashToken('season'), role: 'client', name: 'summer', expiresMs: ENDS_MS },
    ...changes,
  })
  let tokens = [token()]
  const login = loginRule({ tokens: () => tokens, clock, log })('season', '192.0.2.1')

  expect(login?.()).toEqual({ role: 'client', fault: '' })
  tokens = [token({ role: 'monitoring' })]
  expect(login?.().role).toBe('monitoring')
  tokens = []
  expect(login?.()).toEqual({ role: undefined, fault: 'login required' })
  tokens = [token()]
  clock.advance(ENDS_MS - NOW_MS)
  expect(login?.()).toEqual({ role: undefined, fault: 'the token ended on 2027-01-31 at 00.00.00 UTC' })
  tokens = [token({ expiresMs: ENDS_MS + 1 })]
  expect(login?.().role).toBe('client')
})
