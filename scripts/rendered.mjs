// The chart of deploy/helm as Helm renders it, for tests.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import { helm } from '../testkit/src/helm.ts'
import { CHART } from './helm.mjs'
import { ROOT } from './pinned-node.mjs'

export const NAMESPACE = 'hotels'
/** The least values of each kind of release. */
export const SHARD = { secret: 's1-tokens', zone: 'z1', certificates: { secret: 's1-certificates' } }
export const PLATFORM = {
  mode: 'platform',
  secret: 'platform-tokens',
  zones: ['z1'],
  codecs: ['breakfast', 'refundable'],
}

/** @returns the objects of a release, or what Helm says against the values */
export function renderWith(release, values) {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-chart-'))
  try {
    const file = path.join(folder, 'values.json')
    writeFileSync(file, JSON.stringify(values))
    const args = ['template', release, path.join(ROOT, CHART), '--namespace', NAMESPACE, '--values', file]
    const { code, output, errors } = helm([...args, '--kube-version', '1.30.0'])
    const objects = code === 0 ? parseAllDocuments(output).map((each) => each.toJS()) : []
    return { code, errors, objects: objects.filter((each) => each !== null) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The objects of a release. */
export function render(release, values) {
  const { code, errors, objects } = renderWith(release, values)
  if (code !== 0) throw new Error(errors)
  return objects
}

export const ofKind = (objects, kind) => objects.filter((each) => each.kind === kind)

/** Host of a pod of a StatefulSet, as the cluster's DNS has it. */
export const hostOf = ({ metadata, spec }, ordinal) =>
  `${metadata.name}-${ordinal}.${spec.serviceName}.${NAMESPACE}.svc.cluster.local`
