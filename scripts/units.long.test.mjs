import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { PROGRAM, unitFiles } from './units.mjs'

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

let folder
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-units-'))
  return () => rmSync(folder, { recursive: true, force: true })
})

test.runIf(hasSystemd)('systemd accepts every unit', () => {
  const files = Object.entries(unitFiles()).filter(([file]) => file.endsWith('.service'))
  const places = files.map(([file, text]) => {
    const place = path.join(folder, path.basename(file).replace('@', '@edge'))
    // The program need not be installed, nor its manual.
    const ofHere = text.replaceAll(PROGRAM, '/bin/true').replace(/^Documentation=.*\n/m, '')
    writeFileSync(place, ofHere)
    return place
  })
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...places], {
    encoding: 'utf8',
  })
  const about = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('vacancy'))

  expect({ status, about }).toEqual({ status: 0, about: [] })
})
