'use client'
/** What the golden searches of its shard find in a stored snapshot. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { GoldenCheck, GoldenResult } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { Verdict } from './verdict.tsx'

const RUNNING_MS = 1_000
const RESTING_MS = 10_000

export function GoldenOnSnapshot({ id, shard }: { readonly id: string; readonly shard: string }) {
  const query = useRoute(
    'GET /api/v1/snapshots/{id}/golden-check',
    { params: { id } },
    {
      group: ['golden'],
      refetchInterval: ({ state }) => (state.data?.state === 'running' ? RUNNING_MS : RESTING_MS),
    },
  )
  const why = useWhyNot('operator')
  const queries = useQueryClient()
  const run = useMutation({
    mutationFn: () => call('POST /api/v1/snapshots/{id}/golden-check', { params: { id } }),
    onSettled: () => queries.invalidateQueries({ queryKey: ['golden'] }),
  })
  const state = query.data?.state ?? 'none'
  return (
    <Panel
      title={copy.snapshot.title}
      query={query}
      skeleton={2}
      data={{ 'data-golden-check': query.data?.state }}
      isEmpty={({ state: now }) => now === 'none'}
      empty={{ text: copy.snapshot.none(shard) }}
      actions={
        state !== 'none' && (
          <>
            <LinkButton href={routes.golden({ shard })}>{copy.snapshot.open}</LinkButton>
            <Button icon="play" why={why} busy={run.isPending || state === 'running'} onClick={() => run.mutate()}>
              {state === 'due' ? copy.snapshot.run : copy.snapshot.again}
            </Button>
          </>
        )
      }
    >
      {(check) => (
        <div className="grid gap-3">
          <Summary check={check} />
          {run.error && <Failed error={run.error} />}
          {check.results.length > 0 && (
            <Table label={copy.snapshot.title} rows={check.results} rowKey={({ id: key }) => key} columns={COLUMNS} />
          )}
        </div>
      )}
    </Panel>
  )
}

function Summary({ check: { state, message, done, of, at } }: { readonly check: GoldenCheck }) {
  return (
    <p role="status" className="break-words">
      {state === 'running'
        ? copy.snapshot.runs(done, of)
        : `${copy.snapshot.states[state]} ${state === 'due' ? '' : message}`}{' '}
      {at !== null && (
        <span className="text-small text-text-3">
          {copy.snapshot.ranAt} <Age at={at} />
        </span>
      )}
    </p>
  )
}

const COLUMNS: readonly Column<GoldenResult>[] = [
  { id: 'name', header: copy.list.name, rowHeader: true, cell: ({ name }) => name },
  { id: 'found', header: copy.snapshot.found, cell: (result) => <Verdict outcome={result} /> },
]
