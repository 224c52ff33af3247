'use client'
import type { RouteAnswer, RouteInput } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
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
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
import { RegistryFrame } from './registry-frame.tsx'

type Question = RouteInput<'POST /api/v1/registry/resolve'>['body']
type Answer = RouteAnswer<'POST /api/v1/registry/resolve'>
type Asked = { readonly question: Question; readonly answer: Answer; readonly at: string }

const KINDS = [
  { value: 'node', label: 'Node of a shard' },
  { value: 'router', label: 'Router' },
  { value: 'bridge', label: 'Bridge' },
] as const
const KEPT = 50

/** Asks the resolver by hand: where it says that something is, and how long it took. */
export function ResolverPage() {
  const [asked, setAsked] = useState<readonly Asked[]>([])
  const take = (question: Question, answer: Answer) => {
    const id = identityOf(question)
    // The last answer of each identity.
    const others = asked.filter((one) => identityOf(one.question) !== id)
    setAsked([{ question, answer, at: new Date().toISOString() }, ...others].slice(0, KEPT))
  }
  return (
    <RegistryFrame id="resolver" ready>
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel title="Ask the resolver">
          <ResolveForm onAnswer={take} />
        </Panel>
        <Panel title="Answer">
          {asked[0] ? <AnswerFacts {...asked[0]} /> : <p className="text-text-2">Nothing was asked yet.</p>}
        </Panel>
      </div>
      {asked.length > 1 && (
        <Panel title="Last answers" flush>
          <Table label="Last answers" rows={asked} columns={COLUMNS} rowKey={({ question }) => identityOf(question)} />
        </Panel>
      )}
    </RegistryFrame>
  )
}

const identityOf = ({ kind, shard, id }: Question) => `${kind} ${shard ? `${shard}/` : ''}${id}`

function ResolveForm({ onAnswer }: { onAnswer: (question: Question, answer: Answer) => void }) {
  const why = useWhyNot('operator')
  const shards = useLive('summary').data?.shards ?? []
  const [kind, setKind] = useState<Question['kind']>('node')
  const [shard, setShard] = useState('')
  const [id, setId] = useState('')
  const nodes = shards.find((one) => one.id === shard)?.slots ?? []
  const { busy, error, submit } = useSubmit(async () => {
    const question: Question = { kind, id: id.trim(), ...(kind === 'node' ? { shard: shard.trim() } : {}) }
    onAnswer(question, await call('POST /api/v1/registry/resolve', { body: question }))
  })
  return (
    <form aria-label="Ask the resolver" onSubmit={submit} className="flex max-w-96 flex-col gap-4">
      <RadioGroup label="What" value={kind} onChange={setKind} options={KINDS} inline />
      {kind === 'node' && (
        <Field label="Shard" required>
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
      <Field label="Id" required error={error?.field === 'id' ? error.message : undefined}>
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
        why={why ?? (id.trim() === '' || (kind === 'node' && shard.trim() === '') ? 'Say what to look for' : undefined)}
      >
        Resolve
      </Button>
    </form>
  )
}

function AnswerFacts({ question, answer, at }: Asked) {
  return (
    <div className="flex flex-col gap-3">
      <Facts
        facts={[
          [
            'Asked for',
            <span key="what" className="font-mono">
              {identityOf(question)}
            </span>,
          ],
          ['Result', <Outcome key="outcome" answer={answer} />],
          [
            'Address',
            answer.address ? (
              <span key="address" className="font-mono">
                {answer.address}
              </span>
            ) : (
              'none'
            ),
          ],
          ['Took', duration(answer.milliseconds)],
          ['Asked', <Age key="at" at={at} />],
        ]}
      />
      {answer.error && <p className="text-crit">{answer.error}</p>}
      <CodeView label={answer.url} code={answer.answer || '(nothing)'} />
    </div>
  )
}

function Outcome({ answer }: { answer: Answer }) {
  if (answer.address) return <Badge level="ok">{`found, ${answer.status ?? ''}`}</Badge>
  if (answer.status === 404) return <Badge level="warn">not known, 404</Badge>
  return <Badge level="crit">{answer.status === null ? 'no answer' : `status ${answer.status}`}</Badge>
}

const COLUMNS: readonly Column<Asked>[] = [
  {
    id: 'what',
    header: 'Identity',
    rowHeader: true,
    cell: ({ question }) => <span className="font-mono">{identityOf(question)}</span>,
  },
  { id: 'outcome', header: 'Result', cell: ({ answer }) => <Outcome answer={answer} /> },
  {
    id: 'address',
    header: 'Address',
    rank: 2,
    cell: ({ answer }) => <span className="font-mono">{answer.address ?? '–'}</span>,
  },
  { id: 'took', header: 'Took', end: true, cell: ({ answer }) => duration(answer.milliseconds) },
  { id: 'at', header: 'Asked', rank: 2, cell: ({ at }) => <Age at={at} /> },
]
