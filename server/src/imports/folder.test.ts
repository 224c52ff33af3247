/** The import folder: which files are listed, and which may be imported. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fileOf, listFolder } from './folder.ts'

let base: string
let folder: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'vacancy-folder-')))
  folder = join(base, 'inbox')
  mkdirSync(folder)
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

function put(path: string, text = 'x'): string {
  const at = join(folder, path)
  mkdirSync(join(at, '..'), { recursive: true })
  writeFileSync(at, text)
  return at
}
const listed = async () => {
  const { files, more } = await listFolder(folder)
  return [files.map(({ path }) => path), more]
}

test('files are listed by name, with their size and time, inside up to three folders', async () => {
  utimesSync(put('b.csv', 'text'), 1_000, 1_000)
  for (const path of ['a.CSV.gz', 'd/e/f/x.gz', 'd/e/f/g/deep.csv', '.hidden.csv', '.git/a.csv', 'notes.txt', 'csv']) {
    put(path)
  }
  put('c/a.csv')

  const { files, more } = await listFolder(folder)

  expect(files.map(({ path }) => path)).toEqual(['a.CSV.gz', 'b.csv', 'c/a.csv', 'd/e/f/x.gz'])
  expect([files[1], more]).toEqual([
    { path: 'b.csv', bytes: 4, changedAt: '1970-01-01T00:16:40.000Z', recent: false },
    false,
  ])
  // Its writer may not have finished.
  expect(files[0]?.recent).toBe(true)
})

test('links are listed when they lead to a file inside the folder', async () => {
  put('real.csv')
  writeFileSync(join(base, 'secret.csv'), 'x')
  mkdirSync(`${folder}-other`)
  writeFileSync(join(`${folder}-other`, 'x.csv'), 'x')
  const links = { 'in.csv': join(folder, 'real.csv'), 'out.csv': join(base, 'secret.csv'), 'gone.csv': 'nothing' }
  const more = { 'near.csv': join(`${folder}-other`, 'x.csv'), 'self.csv': 'self.csv', 'dir.csv': folder }
  for (const [name, target] of Object.entries({ ...links, ...more })) symlinkSync(target, join(folder, name))

  expect(await listed()).toEqual([['in.csv', 'real.csv'], false])
  expect((await fileOf(folder, 'in.csv')).path).toBe(join(folder, 'real.csv'))
  for (const name of ['out.csv', 'gone.csv', 'near.csv', 'self.csv', 'dir.csv']) {
    await expect(fileOf(folder, name), name).rejects.toMatchObject({ code: 'no-such-file' })
  }
})

test.each(['../inbox/a.csv', 'x/../a.csv', 'a\0.csv', 'a.txt', 'none.csv', 'a.csv/b.csv', 'x\\..\\a.csv'])(
  'the path %j is refused',
  async (path) => {
    put('a.csv')
    put('a.txt')
    put('x/b.csv')

    await expect(fileOf(folder, path)).rejects.toMatchObject({
      ...{ code: 'no-such-file', message: `${path} is not a CSV file in the import folder.`, field: 'path' },
    })
  },
)

test('an absolute path is refused, also inside the folder', async () => {
  put('tmp/a.csv')

  await expect(fileOf(folder, '/tmp/a.csv')).rejects.toMatchObject({ code: 'no-such-file' })
})
