'use client'
/** A saved query: a form for its parameters, then it opens in the playground. */
import type { SavedQuery } from '@vacancy/shared/contract'
import { Suspense, useState } from 'react'
import { routes } from '../../lib/routes.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { TextField } from '../../ui/field.tsx'
import { late } from '../../ui/late.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { isWrite } from './catalogue.ts'
import * as copy from './copy.ts'
import { draftOf } from './history-panel.tsx'
import { openInPlayground } from './links.ts'
import { type Draft, fillParameters, jsonOf, parametersOf } from './request.ts'

const SaveDialog = late(async () => (await import('./save-dialog.tsx')).SaveDialog)

export function SavedQueryPage({ id }: { readonly id: string }) {
  const query = useRoute('GET /api/v1/saved-queries/{id}', { params: { id } }, { group: ['saved-queries'] })
  return (
    <Page
      id="saved-query"
      title={query.data?.name ?? copy.savedQuery.fallbackTitle}
      where={copy.page.title}
      ready={!query.isPending}
      crumbs={[{ href: routes.playground(), label: copy.page.title }]}
      lead={
        query.data && (
          <>
            {copy.savedQuery.changedBy(query.data.mine ? copy.savedQueries.you : query.data.owner)}{' '}
            <Age at={query.data.changedAt} />
          </>
        )
      }
    >
      <Panel title={copy.savedQuery.query} query={query}>
        {(saved) => <Saved saved={saved} />}
      </Panel>
    </Page>
  )
}

function Saved({ saved }: { readonly saved: SavedQuery }) {
  const [values, setValues] = useState<{ readonly [name: string]: string }>({})
  const [isEditing, setEditing] = useState(false)
  const names = parametersOf(saved.fields)
  const draft: Draft = {
    shard: saved.shard,
    node: saved.node ?? '',
    command: saved.command,
    fields: fillParameters(saved.command, saved.fields, values),
  }
  return (
    <>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void openInPlayground(draft, { run: !isWrite(saved.command) })
        }}
      >
        {names.length > 0 && (
          <div className="grid gap-3 sm:grid-cols-2">
            {names.map((name) => (
              <TextField
                key={name}
                label={name}
                hint={copy.savedQuery.parameterHint}
                value={values[name] ?? ''}
                onChange={(text) => setValues({ ...values, [name]: text })}
              />
            ))}
          </div>
        )}
        <CodeView label={copy.savedQuery.request} code={jsonOf(draft)} />
        <div className="flex flex-wrap gap-2">
          {!isWrite(saved.command) && (
            <Button type="submit" kind="primary" icon="play">
              {copy.savedQuery.run(saved.name)}
            </Button>
          )}
          <Button onClick={() => void openInPlayground(draft)}>{copy.actions.openInPlayground}</Button>
          {saved.mine && (
            <Button icon="star" onClick={() => setEditing(true)}>
              {copy.savedQuery.edit}
            </Button>
          )}
        </div>
      </form>
      {isEditing && (
        <Suspense fallback={null}>
          <SaveDialog draft={draftOf(saved)} shard={saved.shard} saved={saved} onClose={() => setEditing(false)} />
        </Suspense>
      )}
    </>
  )
}
