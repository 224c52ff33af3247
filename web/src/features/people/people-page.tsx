'use client'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { PersonRole, PersonView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog, preloadDialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
import { SettingsFrame } from '../settings/settings-frame.tsx'
import { OnceShown } from './once-shown.tsx'
import { ROLE_SAYS } from './roles.ts'

const PEOPLE_KEY = ['people'] as const
const ROLES: readonly PersonRole[] = ['viewer', 'operator', 'admin']

type Layer = { readonly kind: 'add' } | { readonly kind: 'link'; readonly name: string; readonly link: string }

export function PeoplePage() {
  const why = useWhyNot('admin')
  const me = useMe()
  const isAdmin = me.person.role === 'admin'
  const people = useQuery({
    queryKey: PEOPLE_KEY,
    queryFn: ({ signal }) => call('GET /api/v1/people', { signal }),
    enabled: isAdmin,
  })
  const [layer, setLayer] = useState<Layer>()
  return (
    <SettingsFrame
      id="people"
      ready={!isAdmin || !people.isPending}
      actions={
        <Button
          kind="primary"
          icon="plus"
          why={why}
          onClick={() => setLayer({ kind: 'add' })}
          onPointerEnter={preloadDialog}
        >
          Add person
        </Button>
      }
    >
      <Panel
        title="Who may sign in"
        query={people}
        flush
        {...(isAdmin ? {} : { denied: 'Needs the admin role: people are seen and changed by admins.' })}
      >
        {(data) => (
          <PeopleTable people={data.people} why={why} onLink={(name, link) => setLayer({ kind: 'link', name, link })} />
        )}
      </Panel>
      {layer?.kind === 'add' && (
        <AddPerson
          onClose={() => setLayer(undefined)}
          onAdded={(name, link) => setLayer({ kind: 'link', name, link })}
        />
      )}
      {layer?.kind === 'link' && (
        <OnceShown
          title={`Sign-in link for ${layer.name}`}
          label="Sign-in link"
          value={layer.link}
          onClose={() => setLayer(undefined)}
        >
          Give it to {layer.name} by a way that you trust. It works once; then {layer.name} chooses a password in the
          profile.
        </OnceShown>
      )}
    </SettingsFrame>
  )
}

type PeopleTableProps = {
  readonly people: readonly PersonView[]
  readonly why: string | undefined
  readonly onLink: (name: string, link: string) => void
}

function PeopleTable({ people, why, onLink }: PeopleTableProps) {
  const me = useMe()
  const queries = useQueryClient()
  const onError = (error: Error) => toast({ message: error.message, level: 'crit' })
  const change = useMutation({
    mutationFn: ({ id, ...body }: { id: string; role?: PersonRole; disabled?: boolean }) =>
      call('PUT /api/v1/people/{id}', { params: { id }, body }),
    onSuccess: (person) =>
      toast({ message: `${person.name}: ${person.disabled ? 'may not sign in any more' : person.role}` }),
    onError,
    onSettled: () => queries.invalidateQueries({ queryKey: PEOPLE_KEY }),
  })
  const link = useMutation({
    mutationFn: ({ id }: PersonView) => call('POST /api/v1/people/{id}/link', { params: { id } }),
    onSuccess: (answer, person) => onLink(person.name, answer.link),
    onError,
  })
  const columns: Column<PersonView>[] = [
    {
      id: 'name',
      header: 'Name',
      rowHeader: true,
      compare: (a, b) => a.name.localeCompare(b.name),
      cell: (person) => (
        <span className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{person.name}</span>
          {person.id === me.person.id && <span className="text-small text-text-3">you</span>}
          {person.disabled && <Badge level="unk">may not sign in</Badge>}
        </span>
      ),
    },
    {
      id: 'role',
      header: 'Role',
      compare: (a, b) => ROLES.indexOf(a.role) - ROLES.indexOf(b.role),
      cell: (person) => (
        <Select
          aria-label={`Role of ${person.name}`}
          value={person.role}
          disabled={why !== undefined}
          onChange={(event) => change.mutate({ id: person.id, role: event.target.value as PersonRole })}
          options={ROLES.map((role) => ({ value: role, label: role }))}
        />
      ),
    },
    { id: 'seen', header: 'Last seen', rank: 2, cell: (person) => <Age at={person.lastSeenAt} /> },
    { id: 'added', header: 'Added', rank: 3, cell: (person) => <Age at={person.createdAt} /> },
    {
      id: 'actions',
      header: 'Actions',
      end: true,
      cell: (person) => (
        <Menu
          label={`Actions for ${person.name}`}
          items={[
            { label: 'New sign-in link', icon: 'link', why, onSelect: () => link.mutate(person) },
            {
              label: person.disabled ? 'Allow to sign in' : 'Forbid to sign in',
              icon: person.disabled ? 'check' : 'stop',
              danger: !person.disabled,
              why: person.id === me.person.id ? 'Not yourself: another admin can' : why,
              onSelect: () => change.mutate({ id: person.id, disabled: !person.disabled }),
            },
          ]}
        />
      ),
    },
  ]
  return (
    <Table
      label="People"
      rows={people}
      columns={columns}
      rowKey={(person) => person.id}
      sort={{ column: 'name', down: false }}
    />
  )
}

type AddPersonProps = { readonly onClose: () => void; readonly onAdded: (name: string, link: string) => void }

function AddPerson({ onClose, onAdded }: AddPersonProps) {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [role, setRole] = useState<PersonRole>('viewer')
  const { busy, error, submit } = useSubmit(async () => {
    const answer = await call('POST /api/v1/people', { body: { name: name.trim(), role } })
    await queries.invalidateQueries({ queryKey: PEOPLE_KEY })
    onAdded(answer.person.name, answer.link)
  })
  const nameError = error && (error.field === 'name' || error.code === 'name-taken') ? error : undefined
  return (
    <Dialog
      open
      keep
      title="Add person"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="add-person" kind="primary" busy={busy}>
            Add {name.trim() || 'person'}
          </Button>
        </>
      }
    >
      <form id="add-person" aria-label="Add person" onSubmit={submit} className="flex flex-col gap-4">
        <Field label="Name" hint="Letters, digits and . _ @ -" error={nameError?.message}>
          {(wire) => (
            <Input
              {...wire}
              required
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              pattern="[A-Za-z0-9._@\-]{1,64}"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <RadioGroup
          label="Role"
          value={role}
          onChange={setRole}
          options={ROLES.map((value) => ({ value, label: value, hint: ROLE_SAYS[value] }))}
        />
        <SubmitProblem error={nameError ? undefined : error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}
