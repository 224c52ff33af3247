'use client'
/** The plan of a handover: which leaders move where, which stay, and one button. The scope is in the URL. */

import type { HandoverPlan, HandoverRequest } from '@vacancy/shared/contract'
import { type FormEvent, useState } from 'react'
import { duration } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, ErrorState, Panel, Skeleton } from '../../ui/panel.tsx'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { useHandoverPlan, useStartHandover } from './queries.ts'
import { Stops } from './stops.tsx'

const REASON_MIN = 8
const REASON_MAX = 500

export function NewHandoverPage() {
  const [zone] = useUrlParam('zone')
  const [machine] = useUrlParam('machine')
  const [back] = useUrlParam('back')
  const request: HandoverRequest | undefined =
    zone !== '' ? { zone } : machine !== '' ? { machine } : back !== '' ? { back } : undefined
  const query = useHandoverPlan(request)
  const plan = query.data
  return (
    <Page
      id="new-handover"
      title={plan?.title ?? copy.plan.title}
      where={copy.plan.where}
      ready={plan !== undefined || query.error !== null || request === undefined}
      crumbs={[{ href: routes.operations(), label: copy.plan.where }]}
    >
      {!request && (
        <EmptyState
          text={copy.plan.noScope}
          action={<LinkButton href={routes.overview()}>{copy.plan.overview}</LinkButton>}
        />
      )}
      {request && !plan && (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton />)}
      {request && plan && <Plan request={request} plan={plan} refetch={() => void query.refetch()} />}
    </Page>
  )
}

type PlanProps = { readonly request: HandoverRequest; readonly plan: HandoverPlan; readonly refetch: () => void }

function Plan({ request, plan, refetch }: PlanProps) {
  const [reason, setReason] = useState('')
  const start = useStartHandover()
  const whyNotAdmin = useWhyNot('admin')
  const isShort = plan.reasonRequired && reason.trim().length < REASON_MIN
  const why =
    whyNotAdmin ?? (plan.moves === 0 ? copy.plan.nothing : isShort ? copy.plan.reasonTooShort(REASON_MIN) : undefined)
  const run = (event?: FormEvent) => {
    event?.preventDefault()
    if (why !== undefined || start.isPending) return
    start.mutate(
      { request, basis: plan.basis, reason: reason.trim() },
      { onSuccess: ({ id }) => navigate(routes.handover(id)), onError: refetch },
    )
  }
  const isBack = plan.kind === 'bring-back'
  const action = (isBack ? copy.plan.startBack : copy.plan.start)(plan.moves)
  useKey('mod+enter', run, action)
  const scope = copy.placeText(plan.scope)
  const outcome = isBack
    ? copy.plan.outcomeBack(plan.moves, scope)
    : plan.items.length > 0
      ? copy.plan.outcome(plan.moves, scope)
      : (plan.stops.length > 0 ? copy.handover.doneUnsafe : copy.handover.doneAll)(scope)
  const isOutdated = start.error?.code === 'plan-out-of-date'
  return (
    <form onSubmit={run} className="grid gap-4">
      {start.error && (
        <Banner level={isOutdated ? 'warn' : 'crit'} title={isOutdated ? copy.plan.changed : copy.plan.notStarted}>
          {isOutdated ? copy.plan.changedHint : `${start.error.message} ${start.error.hint}`}
        </Banner>
      )}
      <p data-outcome="" className="text-section">
        {outcome}
        {plan.moves > 0 && plan.worstPauseMs !== null && copy.plan.pause(duration(plan.worstPauseMs))}
      </p>
      <Stops scope={scope} stops={plan.stops} />
      <Risks plan={plan} />
      {/* Without a leader to move there is nothing to start, and so no reason to give. */}
      {plan.moves > 0 && (
        <>
          <p className="prose text-text-2">{copy.plan.rules}</p>
          <div className="flex flex-wrap items-end gap-3">
            <TextField
              label={copy.plan.reason}
              hint={plan.reasonRequired ? copy.plan.reasonRequired(REASON_MIN) : copy.plan.reasonOptional}
              required={plan.reasonRequired}
              fieldClassName="w-full sm:w-120"
              value={reason}
              maxLength={REASON_MAX}
              autoComplete="off"
              onChange={setReason}
            />
            <Button
              kind="primary"
              why={why}
              busy={start.isPending}
              aria-keyshortcuts="Control+Enter Meta+Enter"
              data-tip={why ?? copy.plan.keys}
              onClick={() => run()}
            >
              {action}
            </Button>
            {why !== undefined && <p className="pb-1.5 text-text-2">{why}</p>}
            <button type="submit" hidden aria-hidden="true" tabIndex={-1} />
          </div>
        </>
      )}
      <Leaders plan={plan} />
    </form>
  )
}

function Risks({ plan }: { readonly plan: HandoverPlan }) {
  const stays = plan.items.filter(({ blocked }) => blocked !== '').length
  const warned = plan.items.filter(({ blocked, warnings }) => blocked === '' && warnings.length > 0).length
  if (stays === 0 && warned === 0) return null
  return (
    <div className="flex flex-wrap gap-2">
      {stays > 0 && <Badge level="crit">{copy.plan.stays(stays)}</Badge>}
      {warned > 0 && <Badge level="warn">{copy.plan.warned(warned)}</Badge>}
    </div>
  )
}

/** Those that stay first, then those with a warning. */
function Leaders({ plan }: { readonly plan: HandoverPlan }) {
  const weight = ({ blocked, warnings }: HandoverPlan['items'][number]) =>
    blocked !== '' ? 0 : warnings.length > 0 ? 1 : 2
  const rows = plan.items.toSorted((a, b) => weight(a) - weight(b))
  if (rows.length === 0) return null
  return (
    <Panel title={copy.plan.table} flush>
      <Table
        label={copy.plan.table}
        rows={rows}
        rowKey={({ shard }) => shard}
        rowProps={({ shard, blocked }) => ({ 'data-shard': shard, 'data-blocked': blocked === '' ? undefined : '' })}
        columns={[
          {
            id: 'shard',
            header: copy.plan.shard,
            rowHeader: true,
            cell: ({ shard }) => (
              <Link href={routes.shard(shard)} className="font-mono">
                {shard}
              </Link>
            ),
          },
          { id: 'from', header: copy.plan.from, cell: ({ from }) => <span className="font-mono">{from}</span> },
          {
            id: 'to',
            header: copy.plan.to,
            cell: ({ to, blocked }) => <span className="font-mono">{blocked === '' ? to : copy.plan.none}</span>,
          },
          {
            id: 'note',
            header: copy.plan.note,
            cell: ({ blocked, warnings }) =>
              blocked !== '' ? (
                <Badge level="crit">{blocked}</Badge>
              ) : (
                warnings.length > 0 && <Badge level="warn">{warnings.join('; ')}</Badge>
              ),
          },
        ]}
      />
    </Panel>
  )
}
