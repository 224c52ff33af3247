'use client'
/** Submits one job. The payload is checked as it is typed; the same request is shown for a command line. */
import { type FormEvent, useState } from 'react'
import { call } from '../../lib/api.ts'
import { bytes } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { CodeView } from '../../ui/code-view.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { Field, RadioGroup, TextArea, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { SelectField } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { jobCommand } from './curl.ts'
import { bytesOf, dataOf, isBase64, jsonFault, type PayloadKind, type TypedPayload } from './payload.ts'
import { useQueueChange, useQueueStats } from './queries.ts'

type Start = { readonly id: string; readonly payload: TypedPayload; readonly priority: number }

type SubmitProps = {
  readonly onClose: () => void
  /** Fixed on the page of a topic. */
  readonly topic?: string
  readonly start?: Start
  /** The job whose payload it starts with. */
  readonly copyOf?: string
}

const KINDS: readonly PayloadKind[] = ['json', 'text', 'base64', 'none']
const PRIORITIES = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']
const DELAY_SECONDS_MAX = 31_536_000
const ID_BYTES = 256
/** A longer request is not shown again as a command. */
const COMMAND_BYTES = 8_192

/** A new id for each dialog. Browsers hide `crypto.randomUUID` from pages over plain HTTP. */
function newId(): string {
  const random = crypto.getRandomValues(new Uint32Array(2))
  return `job-${[...random].map((word) => word.toString(36)).join('')}`
}

export function SubmitDialog({ onClose, topic: fixed, start, copyOf }: SubmitProps) {
  const operator = useWhyNot('operator')
  const topics = (useQueueStats().data?.topics ?? []).map(({ topic }) => topic)
  const [topic, setTopic] = useState(fixed ?? '')
  const [id, setId] = useState(() => start?.id ?? newId())
  const [payload, setPayload] = useState<TypedPayload>(start?.payload ?? { kind: 'json', text: '{}' })
  const [priority, setPriority] = useState(String(start?.priority ?? 0))
  const [delay, setDelay] = useState('')
  const [problem, setProblem] = useState<unknown>()
  const [duplicate, setDuplicate] = useState('')
  const submit = useQueueChange((job: ReturnType<typeof jobFrom>) =>
    call('POST /api/v1/queue/topics/{topic}/jobs', { params: { topic }, body: { job } }),
  )
  const faults = {
    topic:
      topic === ''
        ? copy.submit.topicFirst
        : topics.length > 0 && !topics.includes(topic)
          ? copy.submit.unknownTopic(topic)
          : undefined,
    id: isJobId(id) ? undefined : copy.submit.badId,
    payload: payloadFault(payload),
    delay: /^\d*$/.test(delay) && Number(delay) <= DELAY_SECONDS_MAX ? undefined : copy.submit.badDelay,
  }
  const why = operator ?? faults.topic ?? faults.id ?? faults.payload ?? faults.delay
  const job = faults.payload === undefined ? jobFrom({ topic, id, payload, priority, delay }) : undefined
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (why !== undefined || submit.isPending || job === undefined) return
    setProblem(undefined)
    setDuplicate('')
    try {
      const { duplicates } = await submit.mutateAsync(job)
      if (duplicates > 0) return setDuplicate(copy.submit.duplicate(id, topic))
      toast({ message: copy.submit.done(id), href: { to: routes.queueJob(topic, id), label: copy.submit.open } })
      onClose()
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <FormDialog
      title={fixed === undefined ? copy.submit.title : copy.submit.titleTo(fixed)}
      action={topic === '' ? copy.submit.title : copy.submit.confirm(topic)}
      why={why}
      busy={submit.isPending}
      onSubmit={send}
      wide
      onClose={onClose}
    >
      {copyOf !== undefined && <p className="prose break-words text-text-2">{copy.submit.copyOf(copyOf)}</p>}
      {fixed === undefined && (
        <Field label={copy.submit.topic} required error={topic === '' ? undefined : faults.topic}>
          {(wire) => (
            <Combobox
              wire={wire}
              free
              value={topic}
              onChange={setTopic}
              options={topics.filter((one) => one.includes(topic)).map((value) => ({ value }))}
            />
          )}
        </Field>
      )}
      <TextField
        label={copy.submit.id}
        required
        hint={copy.submit.idHint}
        error={faults.id ?? (duplicate === '' ? undefined : duplicate)}
        value={id}
        autoComplete="off"
        spellCheck={false}
        className="font-mono"
        onChange={(text) => {
          setId(text)
          setDuplicate('')
        }}
      />
      <RadioGroup
        inline
        label={copy.submit.kind}
        value={payload.kind}
        onChange={(kind) => setPayload({ ...payload, kind })}
        options={KINDS.map((value) => ({ value, label: copy.submit.kinds[value] }))}
      />
      {payload.kind !== 'none' && (
        <Field
          label={copy.submit.payload}
          error={faults.payload}
          hint={job?.data === undefined ? undefined : copy.submit.bytes(bytes(bytesOf(job.data).length))}
        >
          {(wire) => (
            <TextArea
              {...wire}
              rows={8}
              spellCheck={false}
              className="font-mono"
              value={payload.text}
              onChange={({ target }) => setPayload({ ...payload, text: target.value })}
            />
          )}
        </Field>
      )}
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label={copy.submit.priority}
          hint={copy.submit.priorityHint}
          value={priority}
          onChange={setPriority}
          options={PRIORITIES.map((value) => ({ value, label: value }))}
        />
        <TextField
          label={copy.submit.delay}
          hint={copy.submit.delayHint}
          error={faults.delay}
          inputMode="numeric"
          value={delay}
          onChange={(text) => setDelay(text.trim())}
        />
      </div>
      {job !== undefined && (job.data?.length ?? 0) <= COMMAND_BYTES && (
        <details>
          <summary className="w-fit text-text-2 underline underline-offset-2">{copy.submit.fromCommandLine}</summary>
          <CodeView label={copy.submit.fromCommandLine} hideLabel code={jobCommand(job)} className="mt-2" />
        </details>
      )}
      {problem !== undefined && <Failed error={problem} />}
    </FormDialog>
  )
}

type Typed = {
  readonly topic: string
  readonly id: string
  readonly payload: TypedPayload
  readonly priority: string
  readonly delay: string
}

/** The job of a form whose payload is valid. */
function jobFrom({ topic, id, payload, priority, delay }: Typed) {
  const data = dataOf(payload)
  return {
    id,
    topic,
    ...(data !== null && { data }),
    ...(priority !== '0' && { priority: Number(priority) }),
    ...(Number(delay) > 0 && { delay_ms: Number(delay) * 1_000 }),
  }
}

function payloadFault({ kind, text }: TypedPayload): string | undefined {
  if (kind === 'base64') return isBase64(text) ? undefined : copy.submit.badBase64
  const fault = kind === 'json' ? jsonFault(text) : undefined
  return fault === undefined ? undefined : copy.submit.badJson(fault)
}

/** As the queue checks it. */
function isJobId(id: string): boolean {
  return id !== '' && !/[\p{Cc}\p{Cs}]/u.test(id) && new TextEncoder().encode(id).length <= ID_BYTES
}
