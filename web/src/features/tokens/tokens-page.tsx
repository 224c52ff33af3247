'use client'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { TokenRole, TokenView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { utc } from '../../lib/format.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { Dialog, preloadDialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { OnceShown } from '../people/once-shown.tsx'
import { TOKEN_SAYS } from '../people/roles.ts'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
import { SettingsFrame } from '../settings/settings-frame.tsx'

const TOKENS_KEY = ['tokens'] as const
const ROLES: readonly TokenRole[] = ['monitoring', 'client', 'admin']
const DAY_MS = 86_400_000
const LASTS = [
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: 'a year' },
  { value: '', label: 'until it is revoked' },
]

type Layer =
  | { readonly kind: 'make' }
  | { readonly kind: 'value'; readonly name: string; readonly value: string }
  | { readonly kind: 'revoke'; readonly token: TokenView }

export function TokensPage() {
  const why = useWhyNot('admin')
  const isAdmin = useMe().person.role === 'admin'
  const tokens = useQuery({
    queryKey: TOKENS_KEY,
    queryFn: ({ signal }) => call('GET /api/v1/tokens', { signal }),
    enabled: isAdmin,
  })
  const [layer, setLayer] = useState<Layer>()
  const close = () => setLayer(undefined)
  const makeButton = (
    <Button
      kind="primary"
      icon="plus"
      why={why}
      onClick={() => setLayer({ kind: 'make' })}
      onPointerEnter={preloadDialog}
    >
      Make token
    </Button>
  )
  return (
    <SettingsFrame id="tokens" ready={!isAdmin || !tokens.isPending} actions={makeButton}>
      <Panel
        title="Tokens of programs"
        query={tokens}
        flush
        isEmpty={(data) => data.tokens.length === 0}
        empty={{
          text: 'No program has a token yet. Programs send one as bearer token with each call of the API.',
          code: `curl -H "authorization: Bearer $TOKEN" ${typeof location === 'undefined' ? '' : location.origin}/api/v1/summary`,
        }}
        {...(isAdmin ? {} : { denied: 'Needs the admin role: tokens are made and revoked by admins.' })}
      >
        {(data) => (
          <TokenTable tokens={data.tokens} why={why} onRevoke={(token) => setLayer({ kind: 'revoke', token })} />
        )}
      </Panel>
      {layer?.kind === 'make' && (
        <MakeToken onClose={close} onMade={(name, value) => setLayer({ kind: 'value', name, value })} />
      )}
      {layer?.kind === 'value' && (
        <OnceShown title={`Token ${layer.name}`} label="Token" value={layer.value} onClose={close}>
          Put it where the program reads its secrets. The control plane keeps only its hash.
        </OnceShown>
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
    {
      id: 'name',
      header: 'Name',
      rowHeader: true,
      compare: (a, b) => a.name.localeCompare(b.name),
      cell: (token) => (
        <span className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{token.name}</span>
          <TokenState token={token} now={now} />
        </span>
      ),
    },
    {
      id: 'role',
      header: 'Role',
      compare: (a, b) => ROLES.indexOf(a.role) - ROLES.indexOf(b.role),
      cell: ({ role }) => role,
    },
    {
      id: 'used',
      header: 'Last used',
      rank: 2,
      cell: (token) => (
        <>
          <Age at={token.lastUsedAt} /> {token.lastUsedFrom && <span className="font-mono">{token.lastUsedFrom}</span>}
        </>
      ),
    },
    {
      id: 'expires',
      header: 'Expires',
      rank: 3,
      cell: (token) =>
        token.expiresAt ? utc(token.expiresAt).split(',')[0] : <span className="text-text-3">never</span>,
    },
    {
      id: 'made',
      header: 'Made',
      rank: 4,
      compare: (a, b) => a.createdAt.localeCompare(b.createdAt),
      cell: (token) => (
        <>
          <Age at={token.createdAt} /> by {token.createdBy}
        </>
      ),
    },
    {
      id: 'actions',
      header: 'Actions',
      end: true,
      cell: (token) =>
        token.revokedAt ? null : (
          <Button kind="quiet" why={why} onClick={() => onRevoke(token)}>
            Revoke… <span className="sr-only">{token.name}</span>
          </Button>
        ),
    },
  ]
  return (
    <Table
      label="Tokens"
      rows={tokens}
      columns={columns}
      rowKey={(token) => token.id}
      sort={{ column: 'made', down: true }}
    />
  )
}

function TokenState({ token, now }: { token: TokenView; now: number }) {
  if (token.revokedAt) return <Badge level="unk">revoked</Badge>
  if (token.expiresAt && Date.parse(token.expiresAt) <= now) return <Badge level="warn">expired</Badge>
  return null
}

type MakeTokenProps = { readonly onClose: () => void; readonly onMade: (name: string, value: string) => void }

function MakeToken({ onClose, onMade }: MakeTokenProps) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [role, setRole] = useState<TokenRole>('monitoring')
  const [days, setDays] = useState('90')
  const { busy, error, submit } = useSubmit(async () => {
    const expiresAt = days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString()
    const answer = await call('POST /api/v1/tokens', { body: { name: name.trim(), role, expiresAt } })
    await queries.invalidateQueries({ queryKey: TOKENS_KEY })
    onMade(answer.token.name, answer.value)
  })
  return (
    <Dialog
      open
      keep
      title="Make token"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="make-token" kind="primary" busy={busy}>
            Make token {name.trim()}
          </Button>
        </>
      }
    >
      <form id="make-token" aria-label="Make token" onSubmit={submit} className="flex flex-col gap-4">
        <Field
          label="Name"
          hint="Which program it is for. Whoever has the value can sign in to the console with it, too."
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
          label="Role"
          value={role}
          onChange={setRole}
          options={ROLES.map((value) => ({ value, label: value, hint: TOKEN_SAYS[value] }))}
        />
        <Field label="Lasts">
          {(wire) => (
            <Select {...wire} value={days} onChange={(event) => setDays(event.target.value)} options={LASTS} />
          )}
        </Field>
        <SubmitProblem error={error?.field === 'name' ? undefined : error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}

function RevokeToken({ token, onClose }: { token: TokenView; onClose: () => void }) {
  const queries = useQueryClient()
  const revoke = useMutation({
    mutationFn: () => call('DELETE /api/v1/tokens/{id}', { params: { id: token.id } }),
    onSuccess: () => {
      toast({ message: `${token.name} is revoked` })
      onClose()
    },
    onSettled: () => queries.invalidateQueries({ queryKey: TOKENS_KEY }),
  })
  return (
    <Dialog
      open
      title={`Revoke token ${token.name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" busy={revoke.isPending} onClick={() => revoke.mutate()}>
            Revoke {token.name}
          </Button>
        </>
      }
    >
      <p className="prose">
        Whoever uses it is refused at once, and this cannot be taken back.{' '}
        {token.lastUsedAt ? (
          <>
            Last used <Age at={token.lastUsedAt} className="text-text" />
            {token.lastUsedFrom && ` from ${token.lastUsedFrom}`}.
          </>
        ) : (
          'It was never used.'
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
