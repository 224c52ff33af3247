'use client'
/** A saved result: what was asked, what came, when, for whom and from where. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { SavedResult } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { count, micros, utc } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { may, useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { TITLES } from './catalogue.ts'
import { draftOf, RESULTS_KEY } from './history-panel.tsx'
import { openInPlayground } from './links.ts'
import { jsonOf } from './request.ts'
import { ShownResult } from './results.tsx'

export function SavedResultPage({ id }: { readonly id: string }) {
  const query = useQuery({
    queryKey: [...RESULTS_KEY, id],
    queryFn: ({ signal }) => call('GET /api/v1/saved-results/{id}', { params: { id }, signal }),
    // It never changes.
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { data } = query
  return (
    <Page
      id="saved-result"
      title={data ? `${TITLES[data.command]}, saved result` : 'Saved result'}
      where="Playground"
      ready={!query.isPending}
      crumbs={[{ href: routes.playground(), label: 'Playground' }]}
      lead={
        data && (
          <>
            taken by {data.mine ? 'you' : data.owner} <Age at={data.takenAt} />
          </>
        )
      }
    >
      <Panel title="How it was taken" query={query}>
        {(result) => <How result={result} />}
      </Panel>
      {data && <Answer result={data} />}
    </Page>
  )
}

function How({ result }: { readonly result: SavedResult }) {
  const { answer, node } = result
  const me = useMe()
  const [isRemoving, setRemoving] = useState(false)
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <Facts
          facts={[
            ['taken', utc(result.takenAt)],
            ['by', result.mine ? `you, ${result.owner}` : result.owner],
            ['shard', result.shard],
            ['answered by', `${answer.node}, ${answer.role}${node === null ? '' : ', which was asked for'}`],
            ['at index', answer.index === null ? 'the answer did not tell' : count(Number(answer.index))],
            ['in the browser', micros(result.browserMicros)],
            ['control plane and node', micros(answer.totalMicros)],
            ['kept until', utc(result.expiresAt)],
          ]}
        />
        <CodeView label="Request" code={jsonOf(result)} />
      </div>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => void openInPlayground(draftOf(result))}>Open in the playground</Button>
        <CopyButton kind="default" text={() => location.origin + routes.savedResult(result.id)} label="Copy the link" />
        {(result.mine || may(me, 'admin')) && (
          <Button kind="danger" icon="trash" onClick={() => setRemoving(true)}>
            Remove…
          </Button>
        )}
      </div>
      {isRemoving && <RemoveDialog result={result} onClose={() => setRemoving(false)} />}
    </div>
  )
}

function RemoveDialog({ result, onClose }: { readonly result: SavedResult; readonly onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => call('DELETE /api/v1/saved-results/{id}', { params: { id: result.id } }),
    onSuccess: () => {
      navigate(routes.playground())
      queries.removeQueries({ queryKey: [...RESULTS_KEY, result.id] })
      void queries.invalidateQueries({ queryKey: RESULTS_KEY, exact: true })
      toast({ message: 'The saved result was removed' })
    },
  })
  const whose = result.mine ? '' : ` of ${result.owner}`
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Remove this result${whose}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger-filled" busy={remove.isPending} onClick={() => remove.mutate()}>
            Remove the result
          </Button>
        </>
      }
    >
      <p>
        {TITLES[result.command]} of {utc(result.takenAt)}. Whoever has its link finds nothing behind it any more; the
        data of the shard stays as it is.
      </p>
      {remove.error && <ErrorState error={remove.error} />}
    </Dialog>
  )
}

function Answer({ result }: { readonly result: SavedResult }) {
  const [selected, setSelected] = useState<string>()
  const { answer, browserMicros, repeats } = result
  return (
    <Panel title="Result">
      <ShownResult
        taken={{ answer, draft: draftOf(result), browserMicros, repeats: repeats ?? undefined }}
        isRunning={false}
        selected={selected}
        onSelect={setSelected}
        compared={undefined}
        datesMax={null}
      />
      {answer.count > 0 && (
        <p className="prose pt-3 text-small text-text-3">
          Rows, prices and times are as they came then. Areas, stars and positions are those of today.
        </p>
      )}
    </Panel>
  )
}
