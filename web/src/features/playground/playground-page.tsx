'use client'
/** Builds a request, runs it and shows the result (docs/design/control-plane.md#playground). */
import type { HistoryEntry, PlaygroundAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { clock, day } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { useWriteMode } from '../../lib/write-mode.ts'
import { announce } from '../../ui/announce.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Switch } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, PartialStrip, Skeleton } from '../../ui/panel.tsx'
import { SplitPane } from '../../ui/split-pane.tsx'
import { toast } from '../../ui/toast.tsx'
import { isSearch, isWrite } from './catalogue.ts'
import { useCopies } from './copies.ts'
import * as copy from './copy.ts'
import { boundsOf } from './dates.ts'
import { Editor } from './editor.tsx'
import { type Layer, Layers } from './layers.tsx'
import { copyLink } from './links.ts'
import { type Opened, useDraftInUrl, useOpened } from './opened.ts'
import { compileFor, type Draft, withCommand } from './request.ts'
import { type Compared, Results } from './results.tsx'
import { useRuns } from './run.ts'
import { NarrowTarget, RunBar } from './run-bar.tsx'
import { useKeptEdits } from './unsaved.ts'

const EMPTY: Draft = { shard: '', node: '', command: 'SEARCHAVAIL', fields: {} }
/** Each pane is as high as the window below the bar, and scrolls by itself. */
const PANE = 'lg:h-[calc(100dvh-12.5rem)] lg:min-h-96 lg:overflow-y-auto'

export function PlaygroundPage() {
  const opened = useOpened()
  const [chosen, setChosen] = useState<string>()
  const shardId = chosen ?? opened?.draft?.shard ?? ''
  const start = useRoute(
    'GET /api/v1/playground',
    { query: shardId === '' ? {} : { shard: shardId } },
    { enabled: opened !== undefined, placeholderData: (before) => before },
  )
  const isReady = opened !== undefined && !start.isPending
  return (
    <Page id="playground" title={copy.page.title} ready={isReady}>
      {!isReady && <Skeleton rows={8} />}
      {start.error && start.data === undefined && (
        <>
          <ErrorState error={start.error} onRetry={start.refetch} />
          {shardId !== '' && (
            <Button className="self-start" onClick={() => setChosen('')}>
              {copy.page.continueWithout(shardId)}
            </Button>
          )}
        </>
      )}
      {isReady && start.data && <Workbench start={start.data} opened={opened} onShard={setChosen} />}
    </Page>
  )
}

function Workbench({
  start,
  opened,
  onShard,
}: {
  readonly start: PlaygroundAnswer
  readonly opened: Opened
  readonly onShard: (shard: string) => void
}) {
  const { shard } = start
  const [draft, setDraft] = useState<Draft>(() => opened.draft ?? { ...EMPTY, ...shard?.example })
  const [text, setText] = useState(opened.text)
  const [isTried, setTried] = useState(false)
  const [selected, setSelected] = useState<string>()
  const [compared, setCompared] = useState<Compared>()
  const [layer, setLayer] = useState<Layer>()
  const [isWriting, setWriting] = useWriteMode()
  const { run, before, start: startRun, stop } = useRuns()
  const compiled = compileFor(draft, boundsOf(shard))
  const formId = useId()
  const writes = isWrite(draft.command)
  const whyNoMode = useWhyNot('operator')
  const whyNoWrite = useWhyNotOn(shard?.id ?? '', 'operator', 'write')
  const whyNoRun = writes ? (whyNoWrite ?? (isWriting ? undefined : copy.writeMode.turnOnFirst)) : undefined
  // A link names its shard, also where the page chose it.
  const named: Draft = { ...draft, shard: shard?.id ?? draft.shard }
  useDraftInUrl(named, opened.draft !== undefined)
  const draftFault = useKeptEdits({ draft: named, text })

  const runNow = (times = 1) => {
    setTried(true)
    if (!compiled.ok) {
      focusField(formId, compiled.field)
      return announce(compiled.reason, 'assertive')
    }
    if (whyNoRun !== undefined) return toast({ message: whyNoRun, level: 'warn' })
    if (writes) return setLayer({ as: 'write' })
    void startRun(draft, shard?.id, { times })
  }
  const hasOpened = useRef(false)
  // A read shows its result at once; a write waits for a person.
  useEffect(() => {
    if (hasOpened.current) return
    hasOpened.current = true
    if (!writes && compiled.ok) void startRun(draft, shard?.id)
    else if (opened.run) runNow()
  })
  const codes = useCopies(draft, compiled, { shard, proxies: start.proxies })
  useKey('mod+enter', () => runNow(), copy.actions.runShortcut)
  useKey('mod+.', () => codes.last(), copy.actions.copyShortcut)
  const explain = () => setLayer({ as: 'why', property: selected ?? '' })
  useKey('mod+/', () => isSearch(draft.command) && compiled.ok && !layer && explain(), copy.actions.explainShortcut)

  const use = (next: Draft) => {
    setTried(false)
    setText(undefined)
    setDraft(next)
    if (next.shard !== '' && next.shard !== shard?.id) onShard(next.shard)
  }
  const target = {
    draft,
    start,
    onCommand: (command: Draft['command']) => use(withCommand(draft, command)),
    onShard: (id: string) => use({ ...draft, shard: id, node: '' }),
    onNode: (node: string) => setDraft({ ...draft, node }),
  }
  return (
    <>
      <OpenedBanners opened={opened} onStartOver={() => use({ ...EMPTY, ...shard?.example, shard: shard?.id ?? '' })} />
      {start.missing.length > 0 && <PartialStrip missing={start.missing} />}
      {isWriting && <Banner level="warn" title={copy.writeMode.on(shard?.id ?? copy.page.anyShard)} />}
      <RunBar
        {...target}
        form={formId}
        isRunning={run.state === 'running'}
        whyNoRun={whyNoRun}
        whyIncomplete={compiled.ok ? undefined : compiled.reason}
        copies={[
          ...codes.items,
          'line',
          {
            label: copy.code.show,
            why: compiled.ok ? undefined : compiled.reason,
            onSelect: () => setLayer({ as: 'code', codes: codes.codes() }),
          },
        ]}
        onRepeat={runNow}
        onReplicas={() => setLayer({ as: 'replicas' })}
        onWhy={explain}
        onShare={() => void copyLink(named)}
        onSave={() => setLayer({ as: 'save' })}
        onHistory={() => setLayer({ as: 'history' })}
      />
      <SplitPane
        label={copy.page.divider}
        first={
          <RequestForm id={formId} command={draft.command} fault={draftFault} onRun={runNow}>
            <NarrowTarget {...target} />
            {(writes || isWriting) && (
              <Switch
                label={copy.writeMode.label}
                hint={copy.writeMode.hint}
                checked={isWriting}
                onChange={setWriting}
                why={whyNoMode}
              />
            )}
            <Editor
              draft={draft}
              onDraft={setDraft}
              compiled={compiled}
              shard={shard}
              isTried={isTried}
              text={text}
              onText={setText}
            />
          </RequestForm>
        }
        second={
          <Panel title={copy.page.result} className={clsx(PANE, '[--result-height:max(16rem,calc(100dvh-26rem))]')}>
            <Results
              run={run}
              before={before}
              selected={selected}
              onSelect={setSelected}
              onWhy={(property) => setLayer({ as: 'why', property })}
              onRetry={() => runNow()}
              onStop={stop}
              onPage={(next) => void startRun(next, shard?.id)}
              onDraft={(next) => {
                setText(undefined)
                setDraft(next)
              }}
              compared={compared}
              datesMax={shard?.datesMax ?? null}
            />
          </Panel>
        }
      />
      <Layers
        layer={layer}
        draft={named}
        shard={shard?.id}
        last={before?.answer}
        onClose={() => setLayer(undefined)}
        onUse={use}
        onCompare={(entry) => setCompared(comparedWith(entry))}
        onWrite={(confirm) => void startRun(draft, shard?.id, { confirm })}
      />
    </>
  )
}

type RequestFormProps = {
  readonly id: string
  readonly command: string
  /** Why the draft could not be saved; '' when it was. */
  readonly fault: string
  readonly onRun: () => void
  readonly children: ReactNode
}

function RequestForm({ id, command, fault, onRun, children }: RequestFormProps) {
  return (
    <Panel title={copy.page.request} className={PANE}>
      <form
        id={id}
        aria-label={copy.page.request}
        data-command={command}
        className="flex min-w-0 flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault()
          onRun()
        }}
      >
        {children}
        {fault !== '' && (
          <p role="status" className="text-small text-warn">
            {copy.page.draftNotSaved(fault)}
          </p>
        )}
      </form>
    </Panel>
  )
}

/** What could not be opened, and a draft that was restored. */
function OpenedBanners({ opened, onStartOver }: { readonly opened: Opened; readonly onStartOver: () => void }) {
  const [isBack, setBack] = useState(opened.keptAt !== undefined)
  return (
    <>
      {opened.faults.map((fault) => (
        <Banner key={fault} level="warn" title={fault}>
          {copy.page.linkAction}
        </Banner>
      ))}
      {isBack && (
        <Banner
          level="info"
          title={copy.page.draftRestored(`${day(opened.keptAt)} ${clock(opened.keptAt)}`)}
          actions={
            <>
              <Button onClick={() => setBack(false)}>{copy.page.keepDraft}</Button>
              <Button
                onClick={() => {
                  setBack(false)
                  onStartOver()
                }}
              >
                {copy.page.startOver}
              </Button>
            </>
          }
        />
      )}
    </>
  )
}

/** The field whose error keeps the request from running. */
function focusField(form: string, field: string | undefined): void {
  const own = `[data-field="${field}"] :is(input, select, textarea)`
  document.getElementById(form)?.querySelector<HTMLElement>(own)?.focus()
}

function comparedWith({ at, totalMicros }: HistoryEntry): Compared {
  return { label: copy.timing.comparedRun(`${day(at)} ${clock(at)}`), micros: totalMicros }
}
