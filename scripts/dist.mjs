// Makes the archives of a release in `dist/`: `npm run dist`. Equal commits make equal bytes: names are sorted, times are that
// of the commit, and builds do not depend on chance.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { clientTarball } from '../server/src/client-package.ts'
import { commitOf } from '../shared/src/node/commit.ts'
import { billOf, directOf, packagesOf } from './packages.mjs'
import { ROOT } from './pinned-node.mjs'
import { NODE, SHIPPED, stageInto } from './stage.mjs'

const USAGE_EXIT_CODE = 64
const OUT = path.join(ROOT, 'dist')
const MEGABYTE = 1e6

if (process.argv.length > 2) {
  console.error(`dist: unexpected argument ${JSON.stringify(process.argv[2])}; npm run dist has none`)
  process.exitCode = USAGE_EXIT_CODE
} else await makeRelease()

async function makeRelease() {
  const lock = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'))
  const { version, license } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  const release = { version, license, commit: commitOf(ROOT), time: timeOfCommit() }
  mkdirSync(path.join(ROOT, 'build'), { recursive: true })
  const folder = mkdtempSync(path.join(ROOT, 'build/release-'))
  try {
    await stageInto(folder, { root: ROOT, lock, release })
    rmSync(OUT, { recursive: true, force: true })
    mkdirSync(OUT)
    const name = `vacancy-${version}`
    pack(folder, `${name}.tgz`, 'package', release.time)
    pack(folder, `${name}-linux-x64.tar.gz`, `${name}-linux-x64`, release.time)
    writeFileSync(path.join(OUT, `vacancy-client-${version}.tgz`), await clientTarball())
    const shipped = packagesOf(lock.packages, [...SHIPPED, NODE])
    const bill = billOf(release, shipped, directOf(lock.packages, SHIPPED))
    writeFileSync(path.join(OUT, `${name}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`)
    const sums = readdirSync(OUT)
      .sort()
      .map((file) => `${sumOf(path.join(OUT, file))}  ${file}\n`)
    writeFileSync(path.join(OUT, 'SHA256SUMS'), sums.join(''))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  console.log(`${version}, commit ${release.commit}, in ${path.relative(process.cwd(), OUT) || '.'}:`)
  for (const file of readdirSync(OUT).sort())
    console.log(`  ${file}  ${(statSync(path.join(OUT, file)).size / MEGABYTE).toFixed(1)} MB`)
}

/** Unix seconds; what npm takes for files without a time when there is no history. */
function timeOfCommit() {
  try {
    return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }))
  } catch {
    return 499_162_500
  }
}

/** Needs GNU tar. */
function pack(folder, file, prefix, time) {
  execFileSync(
    'tar',
    [
      ...['--create', '--file', path.join(OUT, file), '--use-compress-program=gzip -n', '--format=gnu'],
      ...['--sort=name', `--mtime=@${time}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX'],
      ...[`--transform=s,^,${prefix}/,`, '--directory', folder, ...readdirSync(folder).sort()],
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
}

function sumOf(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
