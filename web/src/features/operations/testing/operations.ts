/** Plans and operations for tests. */

import type { Operation, Plan } from '@vacancy/shared/contract'

const picture = {
  nodes: [
    { node: 'n1', role: 'leader', level: 'ok', message: 'Healthy' },
    { node: 'n2', role: 'follower', level: 'ok', message: 'Healthy' },
    { node: 'n3', role: 'follower', level: 'ok', message: 'Healthy' },
  ],
  leader: 'n1',
  voters: 3,
  majority: 2,
  spare: 1,
  data: null,
} as const satisfies Plan['before']

/** A transfer of s3 from n1 to n3 in production, without warnings. */
export function planOf(over: Partial<Plan> = {}): Plan {
  return {
    id: 'plan-1',
    kind: 'transfer',
    request: { kind: 'transfer', shard: 's3', node: 'n3' },
    shard: 's3',
    node: 'n3',
    takenAt: '2026-11-20T18:30:00.000Z',
    validUntil: '2026-11-20T18:31:00.000Z',
    observedAt: '2026-11-20T18:29:59.400Z',
    basis: { leader: 'n1', term: 41, peersHash: 'a' },
    title: 'Transfer leadership of s3 to n3',
    action: 'Transfer leadership to n3',
    before: { ...picture, nodes: [...picture.nodes] },
    after: { ...picture, nodes: [...picture.nodes], leader: 'n3' },
    effects: [],
    checks: [
      { id: 'one-leader', level: 'ok', text: 'one leader, seen by 3 of 3' },
      { id: 'lag', level: 'ok', text: 'lag 3' },
    ],
    blocked: false,
    confirm: 1,
    confirmText: 's3',
    writePause: null,
    commands: { cli: '', curl: '' },
    environment: { label: 'PRODUCTION', kind: 'production' },
    alternatives: [],
    ...over,
  }
}

export function operationOf(over: Partial<Operation> = {}): Operation {
  return {
    id: 'op_1',
    kind: 'transfer',
    shard: 's3',
    node: 'n3',
    title: 'Transfer leadership of s3 to n3',
    by: 'ana',
    reason: 'n1 gets new memory',
    state: 'verifying',
    message: 'Waiting until a majority shows it',
    notice: '',
    createdAt: '2026-11-20T18:30:00.000Z',
    requestedAt: '2026-11-20T18:30:00.010Z',
    endedAt: null,
    steps: [
      { id: 'requested', text: 'Requested', state: 'done', at: null, milliseconds: 0, evidence: '' },
      {
        id: 'accepted',
        text: 'Accepted',
        state: 'done',
        at: null,
        milliseconds: 14,
        evidence: 'n1 answered "transfer in progress"',
      },
      { id: 'leads', text: 'n3 leads', state: 'running', at: null, milliseconds: null, evidence: '' },
    ],
    uncertaintyMs: 50,
    pauseMs: null,
    expectedPauseMs: null,
    answer: 'transfer in progress',
    cancellable: false,
    undo: null,
    progress: null,
    ...over,
  }
}
