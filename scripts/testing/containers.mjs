// Reads deploy/Containerfile and deploy/compose.yaml.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { readYamlKeys } from '../../shared/src/node/yaml.ts'
import { ROOT } from '../pinned-node.mjs'

const CONTAINERFILE = path.join(ROOT, 'deploy/Containerfile')
const COMPOSE = path.join(ROOT, 'deploy/compose.yaml')

/** Instructions of the last stage, and arguments before it: name → texts. */
export function readContainerfile() {
  const text = readFileSync(CONTAINERFILE, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
  const rows = text.split('\n').filter((line) => line !== '')
  const last = rows.findLastIndex((row) => row.startsWith('FROM '))
  const found = {}
  for (const row of rows.slice(last)) {
    const [, name, value] = /^([A-Z]+) +(.*)$/.exec(row) ?? []
    found[name] = [...(found[name] ?? []), value.replaceAll(/ {2,}/g, ' ')]
  }
  return found
}

/** The sections, with services as Compose merges them, and variables by their defaults. */
export function readCompose() {
  const faults = []
  const text = readFileSync(COMPOSE, 'utf8').replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
  const keys = readYamlKeys(text, COMPOSE, faults)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  const file = Object.fromEntries(keys.map(({ key, value }) => [key, value]))
  const services = Object.entries(file.services).map(([name, service]) => [name, merged(service)])
  return { ...file, services: Object.fromEntries(services) }
}

function merged({ '<<': base, ...own }) {
  return base === undefined ? own : { ...merged(base), ...own }
}

/** A list of secrets, as file below /run/secrets → name. */
export function secretsOf({ secrets = [] }) {
  return Object.fromEntries(
    secrets.map((each) => (typeof each === 'string' ? [each, each] : [each.target, each.source])),
  )
}
