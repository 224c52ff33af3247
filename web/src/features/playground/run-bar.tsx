'use client'
/** Target, run and further actions of the request, in view while the page scrolls. */
import type { PlaygroundAnswer } from '@vacancy/shared/contract'
import { EDGE_TARGET } from '@vacancy/shared/snippets'
import { type ComponentProps, useId } from 'react'
import { Button } from '../../ui/button.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Menu } from '../../ui/menu.tsx'
import { Select } from '../../ui/select.tsx'
import { commandGroups, isSearch, isWrite, type QueryCommand } from './catalogue.ts'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'

/** Numbers of runs that measure the spread of times. */
const REPEATS = [10, 100]

type Items = ComponentProps<typeof Menu>['items']

type RunBarProps = TargetProps & {
  readonly onCommand: (command: QueryCommand) => void
  /** Id of the form that Run submits. */
  readonly form: string
  readonly isRunning: boolean
  readonly whyNoRun: string | undefined
  /** Why the request is not complete. */
  readonly whyIncomplete: string | undefined
  readonly copies: Items
  readonly onRepeat: (times: number) => void
  readonly onReplicas: () => void
  readonly onWhy: () => void
  readonly onShare: () => void
  readonly onSave: () => void
  readonly onGolden: () => void
  readonly onHistory: () => void
}

export function RunBar(props: RunBarProps) {
  const { draft, onCommand, form, isRunning, whyNoRun, whyIncomplete, copies } = props
  const writes = isWrite(draft.command)
  const isNarrow = useMedia(NARROW)
  const more: Items = [
    ...(isNarrow ? narrowItems(props) : []),
    ...(writes
      ? []
      : [
          ...REPEATS.map((times) => ({ label: copy.actions.repeat(times), onSelect: () => props.onRepeat(times) })),
          {
            label: copy.actions.compareReplicas,
            icon: 'not-equal' as const,
            why: whyIncomplete,
            onSelect: props.onReplicas,
          },
          'line' as const,
        ]),
    { label: copy.actions.save, icon: 'star' as const, onSelect: props.onSave },
    ...(isSearch(draft.command)
      ? [{ label: copy.actions.saveAsGolden, icon: 'check' as const, why: whyIncomplete, onSelect: props.onGolden }]
      : []),
  ]
  return (
    <div
      role="toolbar"
      aria-label={copy.actions.bar}
      className="sticky top-12 z-20 -mx-4 flex flex-wrap items-center gap-x-4 gap-y-2 border-line border-y bg-bg px-4 py-2 md:-mx-6 md:px-6"
    >
      <div className="flex min-w-0 grow flex-wrap items-center gap-2 max-lg:hidden">
        <CommandSelect value={draft.command} onChange={onCommand} />
        <Target {...props} />
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <Button
          type="submit"
          form={form}
          kind="primary"
          icon="play"
          why={whyNoRun}
          busy={isRunning}
          data-tip={whyNoRun ?? copy.actions.runKey}
        >
          {writes ? copy.actions.runWrite : copy.actions.run}
        </Button>
        {isSearch(draft.command) && !isNarrow && (
          <Button onClick={props.onWhy} why={whyIncomplete}>
            {copy.actions.explainDialog}
          </Button>
        )}
        {!isNarrow && (
          <>
            <Button icon="link" onClick={props.onShare}>
              {copy.actions.share}
            </Button>
            <Menu label={copy.actions.copyAs} button={copy.actions.copyAs} icon="copy" items={copies} />
          </>
        )}
        <Menu label={copy.actions.more} button={copy.actions.more} items={more} />
        <Button icon="clock" onClick={props.onHistory}>
          {copy.actions.history}
        </Button>
      </div>
    </div>
  )
}

/** On a phone the bar has room for one row. */
function narrowItems({ draft, whyIncomplete, copies, onWhy, onShare }: RunBarProps): Items {
  return [
    ...(isSearch(draft.command)
      ? [{ label: copy.actions.explainDialog, icon: 'question' as const, why: whyIncomplete, onSelect: onWhy }]
      : []),
    { label: copy.actions.share, icon: 'link' as const, onSelect: onShare },
    ...copies,
    'line' as const,
  ]
}

/** Below 1024 px the target is above the form: the bar has room for the actions alone. */
export function NarrowTarget(props: TargetProps & { readonly onCommand: (command: QueryCommand) => void }) {
  return (
    <div className="flex flex-col gap-2 lg:hidden">
      <CommandSelect value={props.draft.command} onChange={props.onCommand} />
      <Target {...props} />
    </div>
  )
}

function CommandSelect({
  value,
  onChange,
}: {
  readonly value: QueryCommand
  readonly onChange: (command: QueryCommand) => void
}) {
  const options = commandGroups().flatMap(({ commands }) =>
    commands.map(({ name, title, isWrite: writes }) => ({
      value: name,
      label: copy.target.commandOption(title, name, writes),
    })),
  )
  return (
    <Select
      aria-label={copy.target.command}
      options={options}
      value={value}
      className="lg:w-68"
      onChange={({ target }) => onChange(target.value as QueryCommand)}
    />
  )
}

type TargetProps = {
  readonly draft: Draft
  readonly start: PlaygroundAnswer
  readonly onShard: (shard: string) => void
  readonly onNode: (node: string) => void
}

function Target({ draft, start, onShard, onNode }: TargetProps) {
  const { shard, shards } = start
  const id = useId()
  const nodes = shard?.nodes ?? []
  const auto = isWrite(draft.command) ? copy.target.autoLeader : copy.target.autoFollower
  return (
    <div className="grid min-w-0 grid-cols-[auto_minmax(0,1fr)] items-center gap-2 text-small text-text-2 lg:flex lg:flex-wrap">
      <span className="contents lg:flex">
        <label htmlFor={`${id}-shard`} className="lg:sr-only">
          {copy.target.shard}
        </label>
        <Select
          id={`${id}-shard`}
          data-tip={copy.target.shard}
          className="lg:w-30"
          options={shards.map((each) => ({
            value: each.id,
            label: each.level === 'ok' ? each.id : `${each.id} · ${each.message}`,
          }))}
          value={shard?.id ?? ''}
          onChange={({ target }) => onShard(target.value)}
        />
      </span>
      <span className="contents lg:flex">
        <label htmlFor={`${id}-node`} className="lg:sr-only">
          {copy.target.node}
        </label>
        <Select
          id={`${id}-node`}
          data-tip={copy.target.node}
          className="lg:w-38"
          options={[
            { value: '', label: auto },
            ...(start.edges.length > 0 || draft.node === EDGE_TARGET
              ? [{ value: EDGE_TARGET, label: copy.target.edge(start.edges) }]
              : []),
            ...nodes.map((node) => ({ value: node.id, label: `${node.id} · ${node.role}` })),
            // A removed node stays selected until another one is chosen.
            ...(draft.node !== '' && draft.node !== EDGE_TARGET && !nodes.some((node) => node.id === draft.node)
              ? [{ value: draft.node, label: copy.target.unknownNode(draft.node) }]
              : []),
          ]}
          value={draft.node}
          onChange={({ target }) => onNode(target.value)}
        />
      </span>
    </div>
  )
}
