'use client'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { SavedResult } from '@vacancy/shared/contract'
/** A saved result with its request, time, owner and source. */
import { COMMANDS } from '@vacancy/shared/wire'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { count, micros, NONE, utc } from '../../lib/format.ts'
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
import * as copy from './copy.ts'
import { draftOf } from './history-panel.tsx'
import { RESULTS_KEY } from './keys.ts'
import { openInPlayground } from './links.ts'
import { jsonOf } from './request.ts'
import { ShownResult } from './results.tsx'

export function SavedResultPage({ id }: { readonly id: string }) {
  const query = useQuery({
    queryKey: [...RESULTS_KEY, id],
    queryFn: ({ signal }) => call('GET /api/v1/saved-results/{id}', { params: { id }, signal }),
    // Saved results never change.
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { data } = query
  return (
    <Page
      id="saved-result"
      title={data ? copy.savedResult.title(COMMANDS[data.command].title) : copy.savedResult.fallbackTitle}
      where={copy.page.title}
      ready={!query.isPending}
      crumbs={[{ href: routes.playground(), label: copy.page.title }]}
      lead={
        data && (
          <>
            {copy.savedResult.savedBy(data.mine ? copy.savedQueries.you : data.owner)} <Age at={data.takenAt} />
          </>
        )
      }
    >
      <Panel title={copy.savedResult.details} query={query}>
        {(result) => <Details result={result} />}
      </Panel>
      {data && <Answer result={data} />}
    </Page>
  )
}

function Details({ result }: { readonly result: SavedResult }) {
  const { answer, node } = result
  const me = useMe()
  const [isDeleting, setDeleting] = useState(false)
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <Facts
          facts={[
            [copy.savedResult.taken, utc(result.takenAt)],
            [copy.savedResult.by, result.mine ? copy.savedResult.ownName(result.owner) : result.owner],
            [copy.savedResult.shard, result.shard],
            [
              copy.savedResult.servedBy,
              `${answer.node}, ${answer.role}${node === null ? '' : copy.savedResult.requested}`,
            ],
            [copy.savedResult.index, answer.index === null ? NONE : count(Number(answer.index))],
            [copy.savedResult.browser, micros(result.browserMicros)],
            [copy.savedResult.server, micros(answer.totalMicros)],
            [copy.savedResult.expires, utc(result.expiresAt)],
          ]}
        />
        <CodeView label={copy.savedResult.request} code={jsonOf(result)} />
      </div>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => void openInPlayground(draftOf(result))}>{copy.actions.openInPlayground}</Button>
        <CopyButton
          kind="default"
          text={() => location.origin + routes.savedResult(result.id)}
          label={copy.savedResult.copyLink}
        />
        {(result.mine || may(me, 'admin')) && (
          <Button kind="danger" icon="trash" onClick={() => setDeleting(true)}>
            {copy.savedResult.deleteDialog}
          </Button>
        )}
      </div>
      {isDeleting && <DeleteDialog result={result} onClose={() => setDeleting(false)} />}
    </div>
  )
}

function DeleteDialog({ result, onClose }: { readonly result: SavedResult; readonly onClose: () => void }) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => call('DELETE /api/v1/saved-results/{id}', { params: { id: result.id } }),
    onSuccess: () => {
      navigate(routes.playground())
      queries.removeQueries({ queryKey: [...RESULTS_KEY, result.id] })
      void queries.invalidateQueries({ queryKey: RESULTS_KEY, exact: true })
      toast({ message: copy.savedResult.deleted })
    },
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title={copy.savedResult.deleteTitle(result.mine ? undefined : result.owner)}
      footer={
        <>
          <Button onClick={onClose}>{copy.actions.cancel}</Button>
          <Button kind="danger-filled" busy={remove.isPending} onClick={() => remove.mutate()}>
            {copy.savedResult.delete}
          </Button>
        </>
      }
    >
      <p>{copy.savedResult.deleteEffect(COMMANDS[result.command].title, utc(result.takenAt))}</p>
      {remove.error && <ErrorState error={remove.error} />}
    </Dialog>
  )
}

function Answer({ result }: { readonly result: SavedResult }) {
  const [selected, setSelected] = useState<string>()
  const { answer, browserMicros, repeats } = result
  return (
    <Panel title={copy.savedResult.result}>
      <ShownResult
        taken={{ answer, draft: draftOf(result), browserMicros, repeats: repeats ?? undefined }}
        isRunning={false}
        selected={selected}
        onSelect={setSelected}
        compared={undefined}
        datesMax={null}
      />
      {answer.count > 0 && <p className="prose pt-3 text-small text-text-3">{copy.savedResult.note}</p>}
    </Panel>
  )
}
