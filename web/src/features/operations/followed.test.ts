import { expect, test } from 'vitest'
import { dismissOperation, followOperations, followStarted, openTray, readFollowed } from './followed.ts'

test('a new operation opens the tray, one that is there already leaves it shut', () => {
  followOperations(['op_1'])
  expect(readFollowed()).toMatchObject({ ids: ['op_1'], isOpen: true })

  openTray(false)
  followOperations(['op_1'])
  expect(readFollowed().isOpen).toBe(false)

  followOperations(['op_2', 'op_1'])
  expect(readFollowed()).toMatchObject({ ids: ['op_2', 'op_1'], isOpen: true })
})

test('what was seen leaves the tray and does not come back; the shard keeps what was started on it last', () => {
  followStarted({ id: 'op_7', shard: 's3' })
  followStarted({ id: 'op_8', shard: 's3' })
  dismissOperation('op_8')
  followOperations(['op_8'])

  expect(readFollowed().ids).not.toContain('op_8')
  expect(readFollowed().startedOn['s3']).toBe('op_8')
})
