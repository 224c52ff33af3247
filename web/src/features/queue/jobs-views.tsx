'use client'
/** Saved views of jobs: a state with its filter, for any topic. */
import type { SavedView } from '@vacancy/shared/contract'
import { useCallback } from 'react'
import { useSearch } from '../../lib/address.tsx'
import { useMe } from '../../lib/session.ts'
import { useSavePreferences } from '../settings/preferences.ts'
import { ViewsMenu } from '../shards/views-menu.tsx'
import * as copy from './copy.ts'
import { jobsViewFilter, jobsViewHref } from './topic-view.ts'

export function JobsViews({ topic }: { readonly topic: string }) {
  const search = useSearch()
  const { views } = useMe().preferences.jobs
  const save = useSavePreferences()
  const setViews = useCallback((next: readonly SavedView[]) => save({ jobs: { views: [...next] } }), [save])
  return (
    <ViewsMenu
      title={copy.jobs.views}
      present={{ filter: jobsViewFilter(search), sort: '', columns: null }}
      layout={{ views, setViews }}
      hrefOf={(view) => jobsViewHref(topic, view)}
      textOf={({ filter }) => copy.jobs.viewText([...new URLSearchParams(filter)])}
    />
  )
}
