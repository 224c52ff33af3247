import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'

// What a browser loads, from the build itself (docs/design/console.md#budgets): gzip -9, without what only
// browsers before modules load.

const BUILD = path.join(import.meta.dirname, '../.next')
const KB = 1_000
const SHARED_MAX = 180 * KB
const CSS_MAX = 20 * KB
const ROUTE_MAX = 60 * KB
const PLAYGROUND_MAX = 90 * KB
/** What Next loads with every page: the shell, and what stands in for a page that fails. */
const FRAME = ['[project]/web/src/app/(console)/layout', '[project]/web/src/app/(console)/error'] as const

type Manifest = {
  readonly entryJSFiles: { readonly [entry: string]: readonly string[] }
  readonly entryCSSFiles: { readonly [entry: string]: readonly { readonly path: string }[] }
}

const sizes = new Map<string, number>()
let shared: ReadonlySet<string>
/** Route → what it loads on top of what all routes share. */
let routes: ReadonlyMap<string, readonly string[]>
let styles: ReadonlySet<string>

beforeAll(() => {
  if (!existsSync(path.join(BUILD, 'BUILD_ID')))
    throw new Error('There is no build of the console to measure: run `npm run build --workspace web` first.')
  const { rootMainFiles } = JSON.parse(readFileSync(path.join(BUILD, 'build-manifest.json'), 'utf8')) as {
    rootMainFiles: string[]
  }
  const pages = globSync('server/app/**/page_client-reference-manifest.js', { cwd: BUILD }).flatMap(manifestsOf)
  const [, first] = pages.find(([, manifest]) => FRAME[0] in manifest.entryJSFiles) ?? []
  shared = new Set([...rootMainFiles, ...FRAME.flatMap((entry) => first?.entryJSFiles[entry] ?? [])])
  routes = new Map(
    pages.map(([route, manifest]) => {
      const own = Object.entries(manifest.entryJSFiles).find(([entry]) => entry.endsWith(`/web/src/app${route}`))
      return [route, (own?.[1] ?? []).filter((file) => !shared.has(file))]
    }),
  )
  styles = new Set(
    pages.flatMap(([, { entryCSSFiles }]) =>
      Object.values(entryCSSFiles)
        .flat()
        .map((file) => file.path),
    ),
  )
}, 240_000)

function manifestsOf(file: string): [string, Manifest][] {
  const scope: { __RSC_MANIFEST?: { [route: string]: Manifest } } = {}
  runInNewContext(readFileSync(path.join(BUILD, file), 'utf8'), { globalThis: scope })
  return Object.entries(scope.__RSC_MANIFEST ?? {})
}

function weigh(files: Iterable<string>): number {
  let sum = 0
  for (const file of files) {
    const known = sizes.get(file) ?? gzipSync(readFileSync(path.join(BUILD, file)), { level: 9 }).length
    sizes.set(file, known)
    sum += known
  }
  return sum
}

test('what all routes share is at most 180 kB of JavaScript', () => {
  const bytes = weigh(shared)
  console.log(`shared by all routes: ${(bytes / KB).toFixed(1)} kB`)
  expect(bytes).toBeLessThanOrEqual(SHARED_MAX)
})

test('styles are at most 20 kB', () => {
  const bytes = weigh(styles)
  console.log(`styles: ${(bytes / KB).toFixed(1)} kB`)
  expect(bytes).toBeLessThanOrEqual(CSS_MAX)
})

test('a route adds at most 60 kB, the playground 90', () => {
  const weighed = [...routes].map(([route, files]) => ({ route, bytes: weigh(files) }))
  const list = weighed.toSorted((a, b) => b.bytes - a.bytes)
  console.log(list.map(({ route, bytes }) => `${(bytes / KB).toFixed(1).padStart(6)} kB ${route}`).join('\n'))

  expect(list.length).toBeGreaterThan(10)
  expect(
    list.filter(({ route, bytes }) => bytes > (route.includes('/playground') ? PLAYGROUND_MAX : ROUTE_MAX)),
  ).toEqual([])
})
