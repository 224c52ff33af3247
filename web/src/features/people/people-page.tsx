'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { PersonRole, PersonView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { useMe, useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { preloadDialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Select } from '../../ui/select.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import { roles } from '../settings/copy.ts'
import { SettingsFrame } from '../settings/settings-frame.tsx'
import * as copy from './copy.ts'
import { ShownOnce } from './shown-once.tsx'

const PEOPLE_KEY = ['people'] as const
const ROLES: readonly PersonRole[] = ['viewer', 'operator', 'admin']

type Layer = { readonly kind: 'add' } | { readonly kind: 'link'; readonly name: string; readonly link: string }

export function PeoplePage() {
  const why = useWhyNot('admin')
  const me = useMe()
  const isAdmin = me.person.role === 'admin'
  const people = useRoute('GET /api/v1/people', {}, { group: PEOPLE_KEY, enabled: isAdmin })
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
          {copy.people.add}
        </Button>
      }
    >
      <Panel title={copy.people.title} query={people} flush {...(isAdmin ? {} : { denied: copy.people.denied })}>
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
        <ShownOnce
          title={copy.people.linkTitle(layer.name)}
          label={copy.people.link}
          value={layer.link}
          onClose={() => setLayer(undefined)}
        >
          {copy.people.linkHint(layer.name)}
        </ShownOnce>
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
      toast({
        message: person.disabled ? copy.people.blocked(person.name) : copy.people.roleChanged(person.name, person.role),
      }),
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
      header: copy.people.name,
      rowHeader: true,
      compare: (a, b) => a.name.localeCompare(b.name),
      cell: (person) => (
        <span className="flex flex-wrap items-center gap-2">
          <span className="font-medium">{person.name}</span>
          {person.id === me.person.id && <span className="text-small text-text-3">{copy.people.you}</span>}
          {person.disabled && <Badge level="unk">{copy.people.cannotSignIn}</Badge>}
          {person.singleSignOn && <span className="text-small text-text-3">{copy.people.singleSignOn}</span>}
        </span>
      ),
    },
    {
      id: 'role',
      header: copy.people.role,
      compare: (a, b) => ROLES.indexOf(a.role) - ROLES.indexOf(b.role),
      cell: (person) => (
        <Select
          aria-label={copy.people.roleOf(person.name)}
          value={person.role}
          disabled={why !== undefined || person.singleSignOn}
          onChange={(event) => change.mutate({ id: person.id, role: event.target.value as PersonRole })}
          options={ROLES.map((role) => ({ value: role, label: role }))}
        />
      ),
    },
    { id: 'seen', header: copy.people.lastSeen, rank: 2, cell: (person) => <Age at={person.lastSeenAt} /> },
    { id: 'added', header: copy.people.added, rank: 3, cell: (person) => <Age at={person.createdAt} /> },
    {
      id: 'actions',
      header: copy.people.actions,
      end: true,
      cell: (person) => (
        <Menu
          label={copy.people.actionsFor(person.name)}
          items={[
            {
              label: copy.people.newLink,
              icon: 'link',
              why: person.singleSignOn ? copy.people.atProvider : why,
              onSelect: () => link.mutate(person),
            },
            {
              label: person.disabled ? copy.people.allow : copy.people.block,
              icon: person.disabled ? 'check' : 'stop',
              danger: !person.disabled,
              why: person.id === me.person.id ? copy.people.notYourself : why,
              onSelect: () => change.mutate({ id: person.id, disabled: !person.disabled }),
            },
          ]}
        />
      ),
    },
  ]
  return (
    <Table
      label={copy.people.title}
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
    <FormDialog
      title={copy.people.add}
      action={copy.people.addNamed(name.trim())}
      busy={busy}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label={copy.people.name} hint={copy.people.nameHint} error={nameError?.message}>
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
        label={copy.people.role}
        value={role}
        onChange={setRole}
        options={ROLES.map((value) => ({ value, label: value, hint: roles[value] }))}
      />
      <SubmitProblem error={nameError ? undefined : error} waitSeconds={0} />
    </FormDialog>
  )
}
