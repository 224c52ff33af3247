'use client'
/** Downloads dead jobs, read page by page: with their payloads as JSON lines, without as CSV. */
import type { JobView } from '@vacancy/shared/contract'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../lib/api.ts'
import { saveFile } from '../../lib/save-file.ts'
import { Button } from '../../ui/button.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import type { DeadQuery } from './dead-filter.ts'
import { fileName, jobsCsv, jobsJsonLines } from './payload.ts'

const FORMATS = {
  json: { label: copy.dead.downloadJson, extension: 'jsonl', type: 'application/x-ndjson', write: jobsJsonLines },
  csv: { label: copy.dead.downloadCsv, extension: 'csv', type: 'text/csv;charset=utf-8', write: jobsCsv },
} as const
type Format = keyof typeof FORMATS

/** With payloads a page may be large. */
const PAGE = { json: 50, csv: 500 } as const

export function DownloadDead({ topic, filter }: { readonly topic: string; readonly filter: DeadQuery }) {
  const [read, setRead] = useState<number>()
  const aborting = useRef<AbortController>(undefined)
  useEffect(() => () => aborting.current?.abort(), [])
  const download = async (format: Format) => {
    const controller = new AbortController()
    aborting.current = controller
    setRead(0)
    try {
      const jobs = await readDead({ topic, filter, format, signal: controller.signal, onRead: setRead })
      const { extension, type, write } = FORMATS[format]
      const name = fileName([topic, 'dead'], extension)
      saveFile(name, type, write(jobs))
      toast({ message: copy.dead.downloaded(jobs.length, name) })
    } catch (error) {
      // The page was left.
      if (controller.signal.aborted) return
      toast({ message: (error as Error).message, level: 'crit' })
    } finally {
      if (!controller.signal.aborted) setRead(undefined)
    }
  }
  return (
    <>
      {read !== undefined && (
        <span role="status" className="text-small text-text-3">
          {copy.dead.downloading(read)}
        </span>
      )}
      {(['json', 'csv'] as const).map((format) => (
        <Button key={format} icon="download" busy={read !== undefined} onClick={() => void download(format)}>
          {FORMATS[format].label}
        </Button>
      ))}
    </>
  )
}

type ReadOptions = {
  readonly topic: string
  readonly filter: DeadQuery
  readonly format: Format
  readonly signal: AbortSignal
  readonly onRead: (jobs: number) => void
}

async function readDead({ topic, filter, format, signal, onRead }: ReadOptions): Promise<readonly JobView[]> {
  // A job that leaves the list starts it again from the beginning: each job counts once.
  const jobs = new Map<string, JobView>()
  let cursor: string | null = null
  do {
    const page: { readonly jobs: readonly JobView[]; readonly next: string | null } = await call(
      'GET /api/v1/queue/topics/{topic}/dead',
      {
        params: { topic },
        query: {
          ...filter,
          limit: PAGE[format],
          data: format === 'json' ? '1' : '0',
          ...(cursor !== null && { cursor }),
        },
        signal,
      },
    )
    for (const job of page.jobs) jobs.set(job.id, job)
    onRead(jobs.size)
    cursor = page.next
  } while (cursor !== null)
  return [...jobs.values()]
}
