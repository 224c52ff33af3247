'use client'
/** One component, shard or node: its state, what it cuts off, and both ends of its connections. */
import type { FabricComponent, FabricEdge } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { count, duration, rate } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { Facts } from '../../ui/facts.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import type { Model, Thing } from './model.ts'

type InspectorProps = { readonly model: Model; readonly focus: string; readonly onFocus: (key: string) => void }

const titleOf = (thing: Thing | undefined) => (thing ? `${copy.kinds[thing.kind]} ${thing.id}` : copy.inspector.title)

/** The same over the page, where there is no room beside the map. */
export function InspectorDrawer(props: InspectorProps & { readonly onClose: () => void }) {
  const { model, focus, onFocus, onClose } = props
  const thing = model.things.get(focus)
  return (
    <Drawer open={thing !== undefined} title={titleOf(thing)} onClose={onClose}>
      <div data-inspector={focus}>{thing && <Details model={model} thing={thing} onFocus={onFocus} />}</div>
    </Drawer>
  )
}

export function Inspector({ model, focus, onFocus }: InspectorProps) {
  const thing = model.things.get(focus)
  const title = titleOf(thing)
  return (
    <Panel
      title={title}
      data={{ 'data-inspector': focus }}
      actions={thing && <IconButton label={copy.inspector.close} icon="cross" onClick={() => onFocus('')} />}
    >
      {thing ? (
        <Details model={model} thing={thing} onFocus={onFocus} />
      ) : (
        <p className="text-text-2">{copy.inspector.none}</p>
      )}
    </Panel>
  )
}

type DetailsProps = { readonly model: Model; readonly thing: Thing; readonly onFocus: (key: string) => void }

function Details({ model, thing, onFocus }: DetailsProps) {
  const { component } = thing
  const shard = model.view.shards.find(({ id }) => id === thing.shard)
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <Badge level={thing.level} className="self-start">
        {thing.message || copy.kinds[thing.kind]}
      </Badge>
      {component && component.cuts.length > 0 && <Cuts cuts={component.cuts} />}
      {component && <ComponentFacts component={component} />}
      {thing.kind === 'shard' && shard && (
        <Facts
          facts={[
            [copy.inspector.zone, shard.zone],
            [copy.inspector.segments, count(shard.segments)],
            [
              copy.inspector.served,
              shard.served === null ? copy.inspector.unknown : shard.served ? copy.inspector.yes : copy.inspector.no,
            ],
          ]}
        />
      )}
      {component && component.differences.length > 0 && (
        <Listed title={copy.inspector.differences}>
          {component.differences.map((difference) => (
            <li key={difference}>
              <Badge level="warn" icon="not-equal">
                {difference}
              </Badge>
            </li>
          ))}
        </Listed>
      )}
      {component && component.reasons.length > 0 && (
        <Listed title={copy.inspector.reasons}>
          {component.reasons.map(({ name, message }) => (
            <li key={name} className="break-words">
              {message}
            </li>
          ))}
        </Listed>
      )}
      {thing.shard !== '' && (thing.kind === 'node' || thing.kind === 'shard' || thing.kind === 'bridge') && (
        <p>
          {thing.kind === 'node' ? (
            <Link href={routes.node(thing.shard, thing.id)}>{copy.inspector.openNode(thing.id)}</Link>
          ) : (
            <Link href={routes.shard(thing.shard)}>{copy.inspector.openShard(thing.shard)}</Link>
          )}
        </p>
      )}
      <Edges title={copy.inspector.incoming} edges={model.edgesTo.get(thing.key)} end="from" onFocus={onFocus} />
      <Edges title={copy.inspector.outgoing} edges={model.edgesFrom.get(thing.key)} end="to" onFocus={onFocus} />
    </div>
  )
}

function Cuts({ cuts }: { readonly cuts: readonly string[] }) {
  return (
    <Listed title={copy.inspector.cuts}>
      {cuts.map((cut) => (
        <li key={cut} className="font-medium text-crit">
          {cut}
        </li>
      ))}
    </Listed>
  )
}

function Listed({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="flex flex-col gap-1">
      <h3 className="font-semibold">{title}</h3>
      <ul className="flex flex-col gap-1">{children}</ul>
    </div>
  )
}

function ComponentFacts({ component }: { readonly component: FabricComponent }) {
  const { registered, rates, lateSince } = component
  const listed =
    registered === null ? copy.inspector.notRegistering : registered ? copy.inspector.listed : copy.inspector.notListed
  return (
    <Facts
      facts={[
        [copy.inspector.state, copy.states[component.state]],
        [copy.inspector.since, <Age key="since" at={component.since} />],
        [
          copy.inspector.registered,
          lateSince === null ? (
            listed
          ) : (
            <span key="late">
              {listed}, {copy.inspector.late} <Age at={lateSince} />
            </span>
          ),
        ],
        [
          copy.inspector.address,
          <span key="address" className="break-all font-mono">
            {component.apiUrl ?? copy.inspector.notPolled}
          </span>,
        ],
        ...(component.zone ? [[copy.inspector.zone, component.zone] as const] : []),
        ...(component.shard ? [[copy.inspector.shard, component.shard] as const] : []),
        ...(component.version ? [[copy.inspector.version, component.version] as const] : []),
        ...component.facts.map(({ name, value }) => [name, value] as const),
        [copy.inspector.rates, copy.inspector.ratesOf(rate(rates.reads), rate(rates.writes), rate(rates.errors))],
        [copy.inspector.p99, duration(rates.p99)],
        [
          copy.inspector.connections,
          copy.inspector.connectionsOf(count(component.connections), count(component.inFlight)),
        ],
      ]}
    />
  )
}

/** `zone-router r1` → `zone router r1`. */
function nameOf(key: string): string {
  const [kind = '', ...id] = key.split(' ')
  return `${kind in copy.kinds ? copy.kinds[kind as keyof typeof copy.kinds] : kind} ${id.join(' ')}`
}

type EdgesProps = {
  readonly title: string
  readonly edges: readonly FabricEdge[] | undefined
  /** The other end. */
  readonly end: 'from' | 'to'
  readonly onFocus: (key: string) => void
}

function Edges({ title, edges, end, onFocus }: EdgesProps) {
  if (!edges || edges.length === 0) return null
  return (
    <Listed title={title}>
      {edges.map((edge) => (
        <li key={edge[end]} data-edge={edge[end]} data-state={edge.state} className="border-line border-t pt-1">
          <div className="flex flex-wrap items-center gap-2">
            <button
              type="button"
              onClick={() => onFocus(edge[end])}
              className="min-h-6 font-mono text-accent underline underline-offset-2 pointer-coarse:min-h-11"
            >
              {nameOf(edge[end])}
            </button>
            <Badge level={edge.level}>{edge.message}</Badge>
          </div>
          <p className="text-small text-text-2">
            <span data-tip={copy.inspector.sentTip}>
              {copy.inspector.sent}: {rate(edge.reads)} + {rate(edge.writes)}
            </span>
            {' · '}
            <span data-tip={copy.inspector.receivedTip}>
              {copy.inspector.received}: {rate(edge.received)}
            </span>
          </p>
        </li>
      ))}
    </Listed>
  )
}
