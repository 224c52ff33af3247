'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { FileTokenView, TokenRole, TokenView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { utc } from '../../lib/format.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { Dialog, preloadDialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SelectField } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { tokenRoles } from '../people/copy.ts'
import { ShownOnce } from '../people/shown-once.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import { SettingsFrame } from '../settings/settings-frame.tsx'
import * as copy from './copy.ts'

const TOKENS_KEY = ['tokens'] as const
const ROLES: readonly TokenRole[] = ['monitoring', 'client', 'producer', 'consumer', 'admin']
/** Roles of the job queue, which may be limited to topics. */
const QUEUE_ROLES: readonly TokenRole[] = ['producer', 'consumer']
const DAY_MS = 86_400_000
const LIFETIMES = [
  { value: '30', label: copy.tokens.days30 },
  { value: '90', label: copy.tokens.days90 },
  { value: '365', label: copy.tokens.year },
  { value: '', label: copy.tokens.noExpiry },
]

type Layer =
  | { readonly kind: 'create' }
  | { readonly kind: 'value'; readonly name: string; readonly value: string }
  | { readonly kind: 'revoke'; readonly token: TokenView }

export function TokensPage() {
  const why = useWhyNot('admin')
  const isAdmin = useMe().person.role === 'admin'
  const tokens = useRoute('GET /api/v1/tokens', {}, { group: TOKENS_KEY, enabled: isAdmin })
  const [layer, setLayer] = useState<Layer>()
  const close = () => setLayer(undefined)
  const createButton = (
    <Button
      kind="primary"
      icon="plus"
      why={why}
      onClick={() => setLayer({ kind: 'create' })}
      onPointerEnter={preloadDialog}
    >
      {copy.tokens.create}
    </Button>
  )
  return (
    <SettingsFrame id="tokens" ready={!isAdmin || !tokens.isPending} actions={createButton}>
      <Panel
        title={copy.tokens.title}
        query={tokens}
        flush
        isEmpty={(data) => data.tokens.length === 0}
        empty={{
          text: copy.tokens.empty,
          code: `curl -H "authorization: Bearer $TOKEN" ${typeof location === 'undefined' ? '' : location.origin}/api/v1/summary`,
        }}
        {...(isAdmin ? {} : { denied: copy.tokens.denied })}
      >
        {(data) => (
          <TokenTable tokens={data.tokens} why={why} onRevoke={(token) => setLayer({ kind: 'revoke', token })} />
        )}
      </Panel>
      {tokens.data?.queueFile && <FileTokens {...tokens.data.queueFile} />}
      {layer?.kind === 'create' && (
        <CreateToken onClose={close} onCreated={(name, value) => setLayer({ kind: 'value', name, value })} />
      )}
      {layer?.kind === 'value' && (
        <ShownOnce
          title={copy.tokens.valueTitle(layer.name)}
          label={copy.tokens.value}
          value={layer.value}
          onClose={close}
        >
          {copy.tokens.valueHint}
        </ShownOnce>
      )}
      {layer?.kind === 'revoke' && <RevokeToken token={layer.token} onClose={close} />}
    </SettingsFrame>
  )
}

type TokenTableProps = {
  readonly tokens: readonly TokenView[]
  readonly why: string | undefined
  readonly onRevoke: (token: TokenView) => void
}

function TokenTable({ tokens, why, onRevoke }: TokenTableProps) {
  const now = useNow()
  const columns: Column<TokenView>[] = [
    nameColumn(now),
    roleColumn(),
    {
      id: 'used',
      header: copy.tokens.lastUsed,
      rank: 2,
      cell: (token) => (
        <>
          <Age at={token.lastUsedAt} /> {token.lastUsedFrom && <span className="font-mono">{token.lastUsedFrom}</span>}
        </>
      ),
    },
    { ...expiryColumn(), rank: 3 },
    {
      id: 'created',
      header: copy.tokens.created,
      rank: 4,
      compare: (a, b) => a.createdAt.localeCompare(b.createdAt),
      cell: (token) => (
        <>
          <Age at={token.createdAt} /> {copy.tokens.by(token.createdBy)}
        </>
      ),
    },
    {
      id: 'actions',
      header: copy.tokens.actions,
      end: true,
      cell: (token) =>
        token.revokedAt ? null : (
          <Button kind="quiet" why={why} onClick={() => onRevoke(token)}>
            {copy.revoke.dialog} <span className="sr-only">{token.name}</span>
          </Button>
        ),
    },
  ]
  return (
    <Table
      label={copy.tokens.table}
      rows={tokens}
      columns={columns}
      rowKey={(token) => token.id}
      sort={{ column: 'created', down: true }}
    />
  )
}

/** A file may leave the name of a token out. */
function nameColumn<T extends { readonly name: string } & Ended>(now: number): Column<T> {
  return {
    id: 'name',
    header: copy.tokens.name,
    rowHeader: true,
    compare: (a, b) => a.name.localeCompare(b.name),
    cell: (token) => (
      <span className="flex flex-wrap items-center gap-2">
        <span className={token.name === '' ? 'text-text-3' : 'font-medium'}>{token.name || copy.file.unnamed}</span>
        <TokenState token={token} now={now} />
      </span>
    ),
  }
}

function roleColumn<T extends Pick<TokenView, 'role' | 'topics'>>(): Column<T> {
  return {
    id: 'role',
    header: copy.tokens.role,
    compare: (a, b) => ROLES.indexOf(a.role) - ROLES.indexOf(b.role),
    cell: ({ role, topics }) => (
      <>
        {role} {topics !== null && <span className="font-mono break-all text-text-2">{topics.join(', ')}</span>}
      </>
    ),
  }
}

function expiryColumn<T extends Pick<TokenView, 'expiresAt'>>(): Column<T> {
  return {
    id: 'expires',
    header: copy.tokens.expires,
    cell: ({ expiresAt }) =>
      expiresAt ? utc(expiresAt).split(',')[0] : <span className="text-text-3">{copy.tokens.never}</span>,
  }
}

/** They are seen here, and changed in their file. */
function FileTokens({ path, tokens }: { readonly path: string; readonly tokens: readonly FileTokenView[] }) {
  const now = useNow()
  const columns: Column<FileTokenView>[] = [nameColumn(now), roleColumn(), expiryColumn()]
  return (
    <Panel title={copy.file.title}>
      <p className="pb-3 break-words text-text-2">
        {tokens.length === 0 ? copy.file.empty(path) : copy.file.hint(path)}
      </p>
      {tokens.length > 0 && (
        <Table
          label={copy.file.table}
          rows={tokens.map((token, n) => ({ ...token, n }))}
          columns={columns}
          rowKey={({ n }) => String(n)}
        />
      )}
    </Panel>
  )
}

type Ended = { readonly revokedAt?: string | null; readonly expiresAt: string | null }

function TokenState({ token, now }: { readonly token: Ended; readonly now: number }) {
  if (token.revokedAt) return <Badge level="unk">{copy.tokens.revoked}</Badge>
  if (token.expiresAt && Date.parse(token.expiresAt) <= now) return <Badge level="warn">{copy.tokens.expired}</Badge>
  return null
}

type CreateTokenProps = { readonly onClose: () => void; readonly onCreated: (name: string, value: string) => void }

function CreateToken({ onClose, onCreated }: CreateTokenProps) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [role, setRole] = useState<TokenRole>('monitoring')
  const [days, setDays] = useState('90')
  const [topics, setTopics] = useState('')
  const isForQueue = QUEUE_ROLES.includes(role)
  const { busy, error, submit } = useSubmit(async () => {
    const expiresAt = days === '' ? null : new Date(serverNow() + Number(days) * DAY_MS).toISOString()
    const names = isForQueue ? topics.split(/[\s,]+/).filter((each) => each !== '') : []
    const body = { name: name.trim(), role, expiresAt, topics: names.length === 0 ? null : names }
    const answer = await call('POST /api/v1/tokens', { body })
    await queries.invalidateQueries({ queryKey: TOKENS_KEY })
    onCreated(answer.token.name, answer.value)
  })
  return (
    <FormDialog
      title={copy.tokens.create}
      action={copy.tokens.createNamed(name.trim())}
      busy={busy}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label={copy.tokens.name}
        hint={copy.tokens.nameHint}
        error={error?.field === 'name' ? error.message : undefined}
      >
        {(wire) => (
          <Input
            {...wire}
            required
            maxLength={64}
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <RadioGroup
        label={copy.tokens.role}
        value={role}
        onChange={setRole}
        options={ROLES.map((value) => ({ value, label: value, hint: tokenRoles[value] }))}
      />
      {isForQueue && (
        <TextField
          label={copy.tokens.topics}
          hint={copy.tokens.topicsHint}
          error={isTopicsError(error?.field) ? error?.message : undefined}
          autoComplete="off"
          value={topics}
          onChange={setTopics}
        />
      )}
      <SelectField label={copy.tokens.expiresIn} value={days} onChange={setDays} options={LIFETIMES} />
      <SubmitProblem
        error={error?.field === 'name' || isTopicsError(error?.field) ? undefined : error}
        waitSeconds={0}
      />
    </FormDialog>
  )
}

/** A fault of one pattern names its place in the list. */
function isTopicsError(field: string | undefined): boolean {
  return field === 'topics' || (field?.startsWith('topics.') ?? false)
}

function RevokeToken({ token, onClose }: { token: TokenView; onClose: () => void }) {
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => call('DELETE /api/v1/tokens/{id}', { params: { id: token.id } }),
    onSuccess: () => {
      toast({ message: copy.revoke.done(token.name) })
      onClose()
    },
    onSettled: () => queries.invalidateQueries({ queryKey: TOKENS_KEY }),
  })
  return (
    <Dialog
      open
      title={copy.revoke.title(token.name)}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{copy.tokens.cancel}</Button>
          <Button kind="danger" busy={revoke.isPending} onClick={() => revoke.mutate()}>
            {copy.revoke.confirm(token.name)}
          </Button>
        </>
      }
    >
      <p className="prose">
        {copy.revoke.effect}{' '}
        {token.lastUsedAt ? (
          <>
            {copy.revoke.lastUsed} <Age at={token.lastUsedAt} className="text-text" />
            {token.lastUsedFrom && copy.revoke.from(token.lastUsedFrom)}.
          </>
        ) : (
          copy.revoke.neverUsed
        )}
      </p>
      {revoke.error && (
        <p role="alert" className="pt-2 text-crit">
          {revoke.error.message}
        </p>
      )}
    </Dialog>
  )
}
