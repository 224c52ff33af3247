'use client'
/** Golden searches by shard: what they expect, and whether that holds on the shard. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { GoldenSearch } from '@vacancy/shared/contract'
import { Suspense, useState } from 'react'
import { call } from '../../lib/api.ts'
import { dateOf } from '../../lib/days.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { ConfirmDialog, Failed } from '../../ui/confirm-dialog.tsx'
import { late } from '../../ui/late.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Menu } from '../../ui/menu.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { openInPlayground } from '../playground/links.ts'
import * as copy from './copy.ts'
import { Verdict } from './verdict.tsx'

const GoldenDialog = late(async () => (await import('../playground/golden-dialog.tsx')).GoldenDialog)

const DAY_MS = 86_400_000

export function GoldenPage() {
  const [shard] = useUrlParam('shard')
  const query = useRoute('GET /api/v1/golden-searches', { query: shard === '' ? {} : { shard } }, { group: ['golden'] })
  const shards = [...new Set(query.data?.searches.map((search) => search.shard))]
  const isNone = query.data?.searches.length === 0
  return (
    <Page id="golden" title={copy.list.title} ready={!query.isPending} lead={<p className="prose">{copy.list.lead}</p>}>
      {query.data === undefined || isNone ? (
        <Panel title={copy.list.title} hideTitle query={query}>
          <EmptyState
            text={copy.list.none}
            action={
              <LinkButton icon="playground" href={routes.playground()}>
                {copy.list.openPlayground}
              </LinkButton>
            }
          />
        </Panel>
      ) : (
        shards.map((id) => (
          <OfShard key={id} shard={id} searches={query.data.searches.filter((search) => search.shard === id)} />
        ))
      )}
    </Page>
  )
}

type Layer = { readonly as: 'change' | 'remove'; readonly search: GoldenSearch } | undefined

function OfShard({ shard, searches }: { readonly shard: string; readonly searches: readonly GoldenSearch[] }) {
  const [layer, setLayer] = useState<Layer>()
  const why = useWhyNot('operator')
  const isNarrow = useMedia(NARROW)
  const run = useRun(shard)
  const menu = (search: GoldenSearch) => (
    <Menu
      label={copy.list.actionsOf(search.name)}
      items={[
        { label: copy.list.runOne, icon: 'play', why, onSelect: () => run.mutate(search.id) },
        { label: copy.list.openPlayground, icon: 'playground', onSelect: () => void openSearch(search) },
        { label: copy.list.change, icon: 'edit', why, onSelect: () => setLayer({ as: 'change', search }) },
        'line',
        { label: copy.list.remove, icon: 'trash', why, onSelect: () => setLayer({ as: 'remove', search }) },
      ]}
    />
  )
  return (
    <Panel
      title={copy.list.ofShard(shard)}
      flush
      actions={
        <Button icon="play" why={why} busy={run.isPending} onClick={() => run.mutate(undefined)}>
          {copy.list.run(shard)}
        </Button>
      }
    >
      {run.error && (
        <div className="px-4 pb-2">
          <Failed error={run.error} />
        </div>
      )}
      <Table
        label={copy.list.ofShard(shard)}
        rows={searches}
        rowKey={({ id }) => id}
        rowProps={({ name, last }) => ({ 'data-golden': name, 'data-last': last?.verdict })}
        columns={[...COLUMNS, { id: 'actions', header: copy.list.actions, cell: menu, width: '5rem' }]}
        {...(isNarrow && {
          card: (search: GoldenSearch) => (
            <div className="grid gap-1">
              <div className="flex items-start justify-between gap-2">
                <strong className="min-w-0 break-words">{search.name}</strong>
                {menu(search)}
              </div>
              <span className="break-words text-text-2">{copy.searchText(search)}</span>
              <span className="break-words">{copy.expectText(search.expect)}</span>
              <Last search={search} />
            </div>
          ),
        })}
      />
      <Suspense fallback={null}>
        {layer?.as === 'change' && (
          <GoldenDialog request={layer.search} stored={layer.search} onClose={() => setLayer(undefined)} />
        )}
      </Suspense>
      {layer?.as === 'remove' && <RemoveDialog search={layer.search} onClose={() => setLayer(undefined)} />}
    </Panel>
  )
}

const COLUMNS: readonly Column<GoldenSearch>[] = [
  { id: 'name', header: copy.list.name, rowHeader: true, cell: ({ name }) => name, compare: byName },
  {
    id: 'search',
    header: copy.list.search,
    rank: 3,
    cell: (search) => <span className="break-words text-text-2">{copy.searchText(search)}</span>,
  },
  { id: 'expects', header: copy.list.expects, cell: ({ expect }) => copy.expectText(expect) },
  { id: 'last', header: copy.list.last, cell: (search) => <Last search={search} /> },
]

function byName(a: GoldenSearch, b: GoldenSearch): number {
  return a.name < b.name ? -1 : 1
}

function Last({ search: { last } }: { readonly search: GoldenSearch }) {
  if (last === null) return <span className="text-text-3">{copy.list.notRun}</span>
  return (
    <span className="grid gap-0.5">
      <Verdict outcome={last} />
      <span className="text-small text-text-3">
        {copy.list.at(last.node)} <Age at={last.at} />
      </span>
    </span>
  )
}

function useRun(shard: string) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (search: string | undefined) =>
      call('POST /api/v1/shards/{shard}/golden-run', {
        params: { shard },
        body: search === undefined ? {} : { search },
      }),
    onSuccess: ({ results }) => {
      const passed = results.filter(({ verdict }) => verdict === 'passed').length
      toast({ message: copy.list.ran(passed, results.length), level: passed === results.length ? 'ok' : 'warn' })
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['golden'] }),
  })
}

/** Opens it with the dates that it has today. */
function openSearch({ shard, command, fields, daysAhead }: GoldenSearch): Promise<void> {
  const days = [fields['dates'] ?? []].flat().map((date) => Date.parse(`${date}T00:00:00Z`) / DAY_MS)
  const shift = daysAhead === null ? 0 : Math.floor(serverNow() / DAY_MS) + daysAhead - Math.min(...days)
  const dates = days.map((day) => dateOf(day + shift))
  const draft = { shard, node: '', command, fields: { ...fields, ...(dates.length > 0 && { dates }) } as never }
  return openInPlayground(draft)
}

function RemoveDialog({ search, onClose }: { readonly search: GoldenSearch; readonly onClose: () => void }) {
  const { id, name } = search
  const queries = useQueryClient()
  return (
    <ConfirmDialog
      title={copy.list.removeTitle(name)}
      level={1}
      name={name}
      action={copy.list.removeTitle(name)}
      run={async () => {
        await call('DELETE /api/v1/golden-searches/{id}', { params: { id } })
        toast({ message: copy.list.removed(name) })
        await queries.invalidateQueries({ queryKey: ['golden'] })
      }}
      onClose={onClose}
    >
      <p className="prose">{copy.list.removeEffect}</p>
    </ConfirmDialog>
  )
}
