import type { ImportView, UploadView } from '@vacancy/shared/contract'
import { afterEach, expect, test, vi } from 'vitest'
import { beginImport, ofBrowser, ofFolder, ofUpload, type Source, swapped } from './sources.ts'
import { shareOf } from './states.ts'

const upload = (id: string, kind: string) => ({ id, kind, name: `${id}.csv`, bytes: 7 }) as UploadView
const sent: [string, unknown][] = []

/** Answers with the view of an upload from the folder, and with the id of an import. */
function serve() {
  sent.length = 0
  vi.stubGlobal('fetch', async (path: string, { method, body }: { method: string; body?: string }) => {
    const value = body === undefined ? undefined : JSON.parse(body)
    sent.push([`${method} ${path}`, value])
    return Response.json(path.endsWith('import-folder') ? upload(`of-${value.path}`, value.kind) : { id: 'i1' })
  })
}
afterEach(() => vi.unstubAllGlobals())

test('a source knows its name and size, wherever it is', () => {
  const file = new File(['abc'], 'hotels.csv')
  expect(ofBrowser(file, 1)).toEqual({ from: 'browser', name: 'hotels.csv', bytes: 3, file, rows: 1 })
  expect(ofFolder({ path: 'in/hotels.csv', bytes: 9 } as Parameters<typeof ofFolder>[0])).toEqual({
    ...{ from: 'folder', name: 'in/hotels.csv', bytes: 9 },
  })
  const earlier = upload('u1', 'properties')
  expect(ofUpload(earlier)).toEqual({ from: 'upload', name: 'u1.csv', bytes: 7, upload: earlier })
})

test('files are swapped, also when one is missing', () => {
  const [a, b] = [ofFolder({ path: 'a', bytes: 1 } as never), ofFolder({ path: 'b', bytes: 2 } as never)]
  expect(swapped({ properties: a, packages: b })).toEqual({ properties: b, packages: a })
  expect(swapped({ properties: a })).toEqual({ packages: a })
  expect(swapped({ packages: b })).toEqual({ properties: b })
})

test('an import of files that are on the control plane names them, and the rate features if chosen', async () => {
  serve()
  const properties = ofUpload(upload('u1', 'properties'))
  const packages = ofFolder({ path: 'p.csv', bytes: 2 } as never)

  expect(await beginImport({ name: 'n', shard: 's1', codecs: ['a'], priceDecimals: 2, properties, packages })).toBe(
    'i1',
  )
  await beginImport({ name: 'n', shard: 's1', codecs: undefined, priceDecimals: 2, properties, packages })

  const body = { name: 'n', shard: 's1', priceDecimals: 2, properties: 'u1', packages: 'of-p.csv' }
  expect(sent.filter(([name]) => name.endsWith('/imports'))).toEqual([
    ['POST /api/v1/imports', { ...body, codecs: ['a'] }],
    ['POST /api/v1/imports', body],
  ])
  expect(sent[0]).toEqual(['POST /api/v1/import-folder', { path: 'p.csv', kind: 'packages' }])
})

test('an upload of the other kind of file is refused', async () => {
  serve()
  const wrong: Source = ofUpload(upload('u1', 'packages'))
  const begun = beginImport({
    name: 'n',
    shard: 's',
    codecs: undefined,
    priceDecimals: 2,
    properties: wrong,
    packages: wrong,
  })

  await expect(begun).rejects.toThrow('u1.csv')
  expect(sent).toEqual([])
})

test.each<[string, object, number | null]>([
  ['built', { state: 'built' }, 1],
  [
    'half uploaded',
    { state: 'uploading', files: { properties: { bytes: 30, received: 30 }, packages: { bytes: 70, received: 20 } } },
    0.5,
  ],
  [
    'of empty files',
    { state: 'uploading', files: { properties: { bytes: 0, received: 0 }, packages: { bytes: 0, received: 0 } } },
    null,
  ],
  ['in work', { state: 'building', progress: { percent: 25 } }, 0.25],
  ['queued', { state: 'queued', progress: null }, null],
])('the share of an import that is %s', (_, view, share) => {
  expect(shareOf(view as ImportView)).toBe(share)
})
