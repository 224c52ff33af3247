import { expect, test } from 'vitest'
import { dismissOperation, followOperations, followStarted, openTray, readFollowed } from './followed-operations.ts'

test('a new operation opens the tray, a known one leaves it closed', () => {
  followOperations(['op_1'])
  expect(readFollowed()).toMatchObject({ ids: ['op_1'], isOpen: true })

  openTray(false)
  followOperations(['op_1'])
  expect(readFollowed().isOpen).toBe(false)

  followOperations(['op_2', 'op_1'])
  expect(readFollowed()).toMatchObject({ ids: ['op_2', 'op_1'], isOpen: true })
})

test('a dismissed operation leaves the tray for good; the shard keeps the last one started', () => {
  followStarted({ id: 'op_7', shard: 's3' })
  followStarted({ id: 'op_8', shard: 's3' })
  dismissOperation('op_8')
  followOperations(['op_8'])

  expect(readFollowed().ids).not.toContain('op_8')
  expect(readFollowed().startedOn['s3']).toBe('op_8')
})
