'use client'
import type { RouteAnswer, RouteInput } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { duration, NONE } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Field, RadioGroup } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import * as copy from './copy.ts'
import { RegistryFrame } from './registry-frame.tsx'

type Query = RouteInput<'POST /api/v1/registry/resolve'>['body']
type Reply = RouteAnswer<'POST /api/v1/registry/resolve'>
type Lookup = { readonly query: Query; readonly reply: Reply; readonly at: string }

const KINDS = [
  { value: 'node', label: copy.resolver.kinds.node },
  { value: 'router', label: copy.resolver.kinds.router },
  { value: 'bridge', label: copy.resolver.kinds.bridge },
] as const
const KEPT = 50

/** Queries the resolver by hand: the address of an identity, and the time it took. */
export function ResolverPage() {
  const [lookups, setLookups] = useState<readonly Lookup[]>([])
  const add = (query: Query, reply: Reply) => {
    const id = identityOf(query)
    // Keeps the last reply per identity.
    const others = lookups.filter((one) => identityOf(one.query) !== id)
    setLookups([{ query, reply, at: new Date(serverNow()).toISOString() }, ...others].slice(0, KEPT))
  }
  return (
    <RegistryFrame id="resolver" ready>
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel title={copy.resolver.title}>
          <ResolveForm onReply={add} />
        </Panel>
        <Panel title={copy.resolver.answer}>
          {lookups[0] ? <ReplyFacts {...lookups[0]} /> : <p className="text-text-2">{copy.resolver.empty}</p>}
        </Panel>
      </div>
      {lookups.length > 1 && (
        <Panel title={copy.resolver.history} flush>
          <Table
            label={copy.resolver.history}
            rows={lookups}
            columns={COLUMNS}
            rowKey={({ query }) => identityOf(query)}
          />
        </Panel>
      )}
    </RegistryFrame>
  )
}

const identityOf = ({ kind, shard, id }: Query) => `${kind} ${shard ? `${shard}/` : ''}${id}`

function ResolveForm({ onReply }: { onReply: (query: Query, reply: Reply) => void }) {
  const why = useWhyNot('operator')
  const shards = useLive('summary').data?.shards ?? []
  const [kind, setKind] = useState<Query['kind']>('node')
  const [shard, setShard] = useState('')
  const [id, setId] = useState('')
  const nodes = shards.find((one) => one.id === shard)?.slots ?? []
  const { busy, error, submit } = useSubmit(async () => {
    const query: Query = { kind, id: id.trim(), ...(kind === 'node' ? { shard: shard.trim() } : {}) }
    onReply(query, await call('POST /api/v1/registry/resolve', { body: query }))
  })
  return (
    <form aria-label={copy.resolver.title} onSubmit={submit} className="flex max-w-96 flex-col gap-4">
      <RadioGroup label={copy.resolver.kind} value={kind} onChange={setKind} options={KINDS} inline />
      {kind === 'node' && (
        <Field label={copy.resolver.shard} required>
          {(wire) => (
            <Combobox
              wire={wire}
              free
              value={shard}
              onChange={setShard}
              options={shards.map((one) => ({ value: one.id, hint: one.zone }))}
            />
          )}
        </Field>
      )}
      <Field label={copy.resolver.id} required error={error?.field === 'id' ? error.message : undefined}>
        {(wire) => (
          <Combobox
            wire={wire}
            free
            value={id}
            onChange={setId}
            options={kind === 'node' ? nodes.map(({ node, role }) => ({ value: node, hint: role })) : []}
          />
        )}
      </Field>
      <SubmitProblem error={error?.field === 'id' ? undefined : error} waitSeconds={0} />
      <Button
        type="submit"
        kind="primary"
        className="self-start"
        busy={busy}
        why={why ?? (id.trim() === '' || (kind === 'node' && shard.trim() === '') ? copy.resolver.idFirst : undefined)}
      >
        {copy.resolver.submit}
      </Button>
    </form>
  )
}

function ReplyFacts({ query, reply, at }: Lookup) {
  return (
    <div className="flex flex-col gap-3">
      <Facts
        facts={[
          [
            copy.resolver.identity,
            <span key="what" className="font-mono">
              {identityOf(query)}
            </span>,
          ],
          [copy.resolver.result, <Outcome key="outcome" reply={reply} />],
          [
            copy.resolver.address,
            reply.address ? (
              <span key="address" className="font-mono">
                {reply.address}
              </span>
            ) : (
              copy.resolver.none
            ),
          ],
          [copy.resolver.duration, duration(reply.milliseconds)],
          [copy.resolver.time, <Age key="at" at={at} />],
        ]}
      />
      {reply.error && <p className="text-crit">{reply.error}</p>}
      <CodeView label={reply.url} code={reply.answer || copy.resolver.emptyBody} />
    </div>
  )
}

function Outcome({ reply }: { reply: Reply }) {
  if (reply.address) return <Badge level="ok">{copy.resolver.found(reply.status)}</Badge>
  if (reply.status === 404) return <Badge level="warn">{copy.resolver.notFound}</Badge>
  return (
    <Badge level="crit">{reply.status === null ? copy.resolver.noResponse : copy.resolver.status(reply.status)}</Badge>
  )
}

const COLUMNS: readonly Column<Lookup>[] = [
  {
    id: 'what',
    header: copy.resolver.identity,
    rowHeader: true,
    cell: ({ query }) => <span className="font-mono">{identityOf(query)}</span>,
  },
  { id: 'outcome', header: copy.resolver.result, cell: ({ reply }) => <Outcome reply={reply} /> },
  {
    id: 'address',
    header: copy.resolver.address,
    rank: 2,
    cell: ({ reply }) => <span className="font-mono">{reply.address ?? NONE}</span>,
  },
  { id: 'took', header: copy.resolver.duration, end: true, cell: ({ reply }) => duration(reply.milliseconds) },
  { id: 'at', header: copy.resolver.time, rank: 2, cell: ({ at }) => <Age at={at} /> },
]
