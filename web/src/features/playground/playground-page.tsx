'use client'
/** Builds a request, runs it and shows the result (docs/design/control-plane.md#playground). */
import type { HistoryEntry, PlaygroundAnswer } from '@vacancy/shared/contract'
import { curlOf, EDGE_TARGET, goOf, proxyCurlOf, typescriptOf, typescriptSetupOf } from '@vacancy/shared/snippets'
import clsx from 'clsx'
import {
  type ComponentProps,
  type ReactNode,
  type RefObject,
  Suspense,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react'
import { clock, day } from '../../lib/format.ts'
import { useKey } from '../../lib/keys.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useSetUrl } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { useWriteMode } from '../../lib/write-mode.ts'
import { announce } from '../../ui/announce.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { copyText } from '../../ui/copy-button.tsx'
import { Switch } from '../../ui/field.tsx'
import { late } from '../../ui/late.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel, PartialStrip, Skeleton } from '../../ui/panel.tsx'
import { SplitPane } from '../../ui/split-pane.tsx'
import { toast } from '../../ui/toast.tsx'
import { ArrivalStrip } from './arrival-strip.tsx'
import { useCounts } from './beside.ts'
import { isSearch, isWrite } from './catalogue.ts'
import type { Code } from './code-dialog.tsx'
import * as copy from './copy.ts'
import { boundsOf } from './dates.ts'
import { Editor } from './editor.tsx'
import { copyLink } from './links.ts'
import { type Compiled, compileFor, type Draft, hexOf, jsonOf, withCommand } from './request.ts'
import { type Compared, Results } from './results.tsx'
import { useRuns } from './run.ts'
import { NarrowTarget, RunBar } from './run-bar.tsx'
import { encodeShare, openShare, SHARE_CHARS_MAX } from './share.ts'
import { type KeptEdits, keptEdits, useKeptEdits } from './unsaved.ts'

const URL_AFTER_MS = 300

/** The request a page starts with, from the URL or the last draft of the tab, and its copy in the URL. */
type Opened = {
  readonly draft: Draft | undefined
  /** Text of the JSON editor while it is not a valid request. */
  readonly text: string | undefined
  readonly run: boolean
  /** When this draft of the tab was saved; undefined for a request from a link. */
  readonly keptAt: string | undefined
  readonly faults: readonly string[]
}

/** The initial request, determined once, before anything is rendered. */
function useOpened(): Opened | undefined {
  const [opened, setOpened] = useState<Opened>()
  useEffect(() => {
    void openedBy(new URLSearchParams(location.search)).then(setOpened)
  }, [])
  return opened
}

/** Opens the request in the URL, or restores the last draft of this tab. */
async function openedBy(search: URLSearchParams): Promise<Opened> {
  const q = search.get('q')
  const [kept, shared] = await Promise.all([keptOrFault(), q === null ? undefined : openShare(q)])
  const none = { draft: undefined, text: undefined, run: false, keptAt: undefined }
  if (!shared) {
    if (typeof kept === 'string') return { ...none, faults: [copy.page.draftUnreadable(kept)] }
    return kept ? { ...kept, run: false, keptAt: kept.at, faults: [] } : { ...none, faults: [] }
  }
  if (!shared.ok) return { ...none, faults: [copy.page.linkUnreadable(shared.reason)] }
  const { draft } = shared
  // The URL follows the draft: JSON text that is not valid yet belongs to it only if both have the same draft.
  const isOwn = typeof kept === 'object' && JSON.stringify(kept.draft) === JSON.stringify(draft)
  return {
    draft,
    text: isOwn ? kept.text : undefined,
    // A link never runs a write.
    run: search.get('run') === '1' && !isWrite(draft.command),
    keptAt: undefined,
    faults: [],
  }
}

async function keptOrFault(): Promise<KeptEdits | string | undefined> {
  try {
    return await keptEdits()
  } catch (error) {
    if (error instanceof ApiProblem) return error.message
    throw error
  }
}

/** Keeps the request in the URL, for reloads, bookmarks and other tabs. */
function useDraftInUrl(draft: Draft, fromLink: boolean): void {
  const set = useSetUrl()
  const text = JSON.stringify(draft)
  const first = useRef(text)
  useEffect(() => {
    if (!fromLink && text === first.current) return
    let isGone = false
    const timer = setTimeout(async () => {
      const q = await encodeShare(JSON.parse(text) as Draft)
      if (isGone) return
      if (q.length <= SHARE_CHARS_MAX) set({ q, run: null })
      // Too long for the URL. A short link that was opened stays valid until the request changes.
      else if (text === first.current) set({ run: null })
      else set({ q: null, run: null })
    }, URL_AFTER_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [text, fromLink, set])
}

const WhyDialog = late(async () => (await import('./why-dialog.tsx')).WhyDialog)
const ReplicasDialog = late(async () => (await import('./replicas-dialog.tsx')).ReplicasDialog)
const WriteDialog = late(async () => (await import('./write-dialog.tsx')).WriteDialog)
const CodeDialog = late(async () => (await import('./code-dialog.tsx')).CodeDialog)
const HistoryDrawer = late(async () => (await import('./history-drawer.tsx')).HistoryDrawer)
const SaveDialog = late(async () => (await import('./save-dialog.tsx')).SaveDialog)
const GoldenDialog = late(async () => (await import('./golden-dialog.tsx')).GoldenDialog)

/** The dialogs and the drawer over the playground, each loaded when it is opened. */
type Layer =
  | { readonly as: 'why'; readonly property: string }
  | { readonly as: 'code'; readonly codes: readonly Code[] }
  | { readonly as: 'replicas' | 'write' | 'save' | 'golden' | 'history' }
  | undefined

type LayersProps = {
  readonly layer: Layer
  readonly draft: Draft
  readonly shard: string | undefined
  /** Of the last run. */
  readonly last: ComponentProps<typeof HistoryDrawer>['last']
  readonly onClose: () => void
  readonly onUse: (draft: Draft) => void
  readonly onCompare: (entry: HistoryEntry) => void
  /** @param confirm what the person typed to confirm it */
  readonly onWrite: (confirm: string) => void
}

function Layers({ layer, draft, shard, last, onClose, onUse, onCompare, onWrite }: LayersProps) {
  if (!layer) return null
  const props = { draft, shard, onClose }
  return (
    <Suspense fallback={null}>
      {layer.as === 'why' && <WhyDialog {...props} property={layer.property} />}
      {layer.as === 'replicas' && <ReplicasDialog {...props} />}
      {layer.as === 'code' && <CodeDialog codes={layer.codes} onClose={onClose} />}
      {layer.as === 'save' && <SaveDialog {...props} />}
      {layer.as === 'golden' && isSearch(draft.command) && (
        <GoldenDialog
          request={{ shard: shard ?? '', command: draft.command, fields: { ...draft.fields } as never }}
          onClose={onClose}
        />
      )}
      {layer.as === 'history' && (
        <HistoryDrawer
          draft={draft}
          last={last}
          onClose={onClose}
          onUse={(next, entry) => {
            onClose()
            onUse(next)
            onCompare(entry)
          }}
          onCompare={onCompare}
        />
      )}
      {layer.as === 'write' && (
        <WriteDialog
          {...props}
          onWrite={(confirm) => {
            onClose()
            onWrite(confirm)
          }}
        />
      )}
    </Suspense>
  )
}

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
  const [result, showResult] = useShownResult()
  const counts = useCounts(before, draft)
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
    void startRun(draft, shard?.id, { times }).then(showResult)
  }
  // A read shows its result at once; a write waits for a person.
  useOnce(() => {
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
  const search = (next: Draft) => {
    use(next)
    void startRun(next, shard?.id).then(showResult)
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
      <Faults faults={opened.faults} />
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
        onGolden={() => setLayer({ as: 'golden' })}
        onHistory={() => setLayer({ as: 'history' })}
      />
      <SplitPane
        label={copy.page.divider}
        first={
          <RequestForm
            id={formId}
            command={draft.command}
            fault={draftFault}
            // Until the first change.
            restoredAt={draft === opened.draft && text === opened.text ? opened.keptAt : undefined}
            onStartOver={() => use({ ...EMPTY, ...shard?.example, shard: shard?.id ?? '' })}
            onRun={runNow}
          >
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
              {...{ draft, compiled, shard, isTried, text, counts }}
              onDraft={setDraft}
              onText={setText}
              belowDates={<ArrivalStrip done={before} draft={draft} onArrive={search} />}
            />
          </RequestForm>
        }
        second={
          <div ref={result} className="flex min-w-0 scroll-mt-14 flex-col">
            <Panel title={copy.page.result} className={clsx(PANE, '[--result-height:max(16rem,calc(100dvh-26rem))]')}>
              <Results
                {...{ run, before, selected, compared }}
                onSelect={setSelected}
                onWhy={(property) => setLayer({ as: 'why', property })}
                onRetry={() => runNow()}
                onStop={stop}
                onSearch={search}
                onPage={(next) => void startRun(next, shard?.id)}
                onDraft={use}
                datesMax={shard?.datesMax ?? null}
              />
            </Panel>
          </div>
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

function useOnce(act: () => void): void {
  const isDone = useRef(false)
  useEffect(() => {
    if (isDone.current) return
    isDone.current = true
    act()
  })
}

/** The element of the result, and what brings it into view where it is below the form. */
function useShownResult(): readonly [RefObject<HTMLDivElement | null>, () => void] {
  const result = useRef<HTMLDivElement>(null)
  const show = () => {
    const element = result.current
    if (element && element.getBoundingClientRect().top > innerHeight / 2) element.scrollIntoView()
  }
  return [result, show]
}

/** What could not be opened. */
function Faults({ faults }: Pick<Opened, 'faults'>) {
  return faults.map((fault) => (
    <Banner key={fault} level="warn" title={fault}>
      {copy.page.linkAction}
    </Banner>
  ))
}

type RequestFormProps = {
  readonly id: string
  readonly command: string
  /** Why the draft could not be saved; '' when it was. */
  readonly fault: string
  /** When the draft was saved, if it is a restored one. */
  readonly restoredAt: string | undefined
  readonly onStartOver: () => void
  readonly onRun: () => void
  readonly children: ReactNode
}

function RequestForm({ id, command, fault, restoredAt, onStartOver, onRun, children }: RequestFormProps) {
  return (
    <Panel
      title={copy.page.request}
      className={PANE}
      actions={
        restoredAt !== undefined && (
          <>
            <span className="text-small text-text-2">
              {copy.page.draftRestored(`${day(restoredAt)} ${clock(restoredAt)}`)}
            </span>
            <Button kind="quiet" onClick={onStartOver}>
              {copy.page.startOver}
            </Button>
          </>
        )
      }
    >
      <form
        id={id}
        aria-label={copy.page.request}
        data-command={command}
        className="flex min-w-0 flex-col gap-3"
        // Its own check names the first field that is missing, in the order of the form.
        noValidate
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

/** The field whose error keeps the request from running. */
function focusField(form: string, field: string | undefined): void {
  const own = `[data-field="${field}"] :is(input, select, textarea)`
  document.getElementById(form)?.querySelector<HTMLElement>(own)?.focus()
}

function comparedWith({ at, totalMicros }: HistoryEntry): Compared {
  return { label: copy.timing.comparedRun(`${day(at)} ${clock(at)}`), micros: totalMicros }
}

type CopyKind = 'TypeScript' | 'curl' | 'curl (proxy)' | 'Go' | 'JSON' | 'hex'

/** One key copies it in the last used language. */
function useCopies(draft: Draft, compiled: Compiled, { shard, proxies }: Pick<PlaygroundAnswer, 'shard' | 'proxies'>) {
  const [last, setLast] = useState<CopyKind>('TypeScript')
  const settings = useRoute('GET /api/v1/settings', {}, { group: ['settings'], staleTime: 60_000 })
  const nodes = (shard?.nodes ?? []).flatMap(({ id, tcp }) =>
    tcp !== null && (draft.node === '' || draft.node === EDGE_TARGET || draft.node === id) ? [tcp] : [],
  )
  const why = compiled.ok ? undefined : compiled.reason
  const textOf = (kind: CopyKind): string => {
    if (!compiled.ok) return ''
    const { command } = draft
    const { fields, frame } = compiled
    if (kind === 'TypeScript') return typescriptOf(command, fields, nodes)
    if (kind === 'curl (proxy)') return proxyCurlOf(proxies[0] ?? '', command, fields)
    if (kind === 'JSON') return jsonOf(draft)
    if (kind === 'hex') return hexOf(frame)
    const own = fields['propertyId'] ?? fields['segment']
    const confirm = command.startsWith('DEL') ? String(own) : undefined
    const base = settings.data?.baseUrl || location.origin
    const query = { command, fields, shard: shard?.id, node: draft.node || undefined, confirm }
    return kind === 'Go' ? goOf(base, query) : curlOf(base, query)
  }
  const copyAs = async (kind: CopyKind) => {
    setLast(kind)
    if (why !== undefined) return toast({ message: why, level: 'warn' })
    toast(
      (await copyText(textOf(kind)))
        ? { message: copy.actions.copiedAs(kind) }
        : { message: copy.actions.copyBlocked, level: 'warn' },
    )
  }
  const noAddress = nodes.length === 0 ? copy.actions.noNodeAddress : undefined
  const kinds: readonly CopyKind[] = [
    ...(['TypeScript', 'curl'] as const),
    ...(proxies.length > 0 ? (['curl (proxy)'] as const) : []),
    ...(['Go', 'JSON', 'hex'] as const),
  ]
  const items = kinds.map((kind) => ({
    label: kind === last ? copy.actions.copyWithKey(kind) : kind,
    why: why ?? (kind === 'TypeScript' ? noAddress : undefined),
    onSelect: () => void copyAs(kind),
  }))
  const setupBase = settings.data?.baseUrl || location.origin
  const codes = (): Code[] =>
    kinds
      .filter((kind) => kind !== 'TypeScript' || noAddress === undefined)
      .map((kind) => ({ kind, text: textOf(kind), setup: kind === 'TypeScript' ? typescriptSetupOf(setupBase) : '' }))
  return { items, codes, last: () => void copyAs(last) }
}
