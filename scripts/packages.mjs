// The packages that a release contains, from package-lock.json, and its bill of materials (CycloneDX 1.5).
import { createHash } from 'node:crypto'

/**
 * The packages that workspaces need to run, by their place below node_modules. Optional ones are left out: programs work
 * without them.
 *
 * @param packages of package-lock.json
 * @param starts folders of workspaces, or places of packages
 */
export function packagesOf(packages, starts) {
  const found = new Map()
  const visit = (place, needs) => {
    const entry = packages[place]
    if (entry === undefined) throw new Error(`package-lock.json has no ${needs}`)
    if (found.has(place)) return
    found.set(place, entry)
    if (entry.link) visit(entry.resolved, place)
    for (const name of Object.keys(entry.dependencies ?? {}))
      visit(placeOf(packages, place, name), `${name} of ${place}`)
  }
  for (const start of starts) visit(start, start)
  return new Map([...found].filter(([place, { link }]) => place.includes('node_modules/') && !link))
}

/** The places of the packages that workspaces name as their dependencies. */
export function directOf(packages, workspaces) {
  const places = workspaces.flatMap((workspace) => needsOf(packages, workspace))
  return [...new Set(places)].filter((place) => !packages[place].link).sort()
}

/** Where Node finds a package: in the nearest node_modules above. */
export function placeOf(packages, from, name) {
  const parts = from.split('/')
  for (let count = parts.length; count >= 0; count--) {
    const place = [...parts.slice(0, count), 'node_modules', name].join('/')
    if (packages[place]) return place
  }
  return undefined
}

export const nameOf = (place) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)

/**
 * @param release `version`, `license`, and `time` in unix seconds
 * @param packages by place, as `packagesOf` finds them
 * @param direct places of those that the programs themselves import
 */
export function billOf(release, packages, direct) {
  const places = [...packages.keys()]
  const all = Object.fromEntries(packages)
  const own = urlOf('vacancy', release.version)
  const refOf = (place) => urlOf(nameOf(place), all[place].version)
  // Two places may hold the same version.
  const byRef = new Map(places.map((place) => [refOf(place), place]).sort(([a], [b]) => (a < b ? -1 : 1)))
  const bill = {
    metadata: {
      timestamp: new Date(release.time * 1000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': own,
        name: 'vacancy',
        version: release.version,
        purl: own,
        licenses: licensesOf(release.license),
      },
    },
    components: [...byRef].map(([ref, place]) => componentOf(ref, place, all[place])),
    dependencies: [
      { ref: own, dependsOn: sorted(direct.map(refOf)) },
      ...[...byRef].map(([ref, place]) => ({ ref, dependsOn: sorted(needsOf(all, place).map(refOf)) })),
    ],
  }
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(bill))}`
  return { bomFormat: 'CycloneDX', specVersion: '1.5', serialNumber, version: 1, ...bill }
}

function componentOf(ref, place, { version, license, integrity, resolved }) {
  const name = nameOf(place)
  return {
    type: 'library',
    'bom-ref': ref,
    name,
    version,
    purl: ref,
    ...(license && { licenses: licensesOf(license) }),
    ...(integrity?.startsWith('sha512-') && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    }),
    ...(resolved && { externalReferences: [{ type: 'distribution', url: resolved }] }),
  }
}

function needsOf(all, place) {
  return Object.keys(all[place].dependencies ?? {})
    .map((name) => placeOf(all, place, name))
    .filter((found) => found !== undefined)
}

const sorted = (refs) => [...new Set(refs)].sort()
const licensesOf = (license) => [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }]
const urlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`

/** A UUID of version 8, from a hash. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)]
  return parts.join('-')
}
