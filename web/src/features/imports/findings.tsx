'use client'
/**
 * The findings of the check by kind, and the first rows with invalid cells marked (docs/design/control-plane.md#imports).
 */
import type { Level } from '@vacancy/shared/contract'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { count } from '../../lib/format.ts'
import { Badge } from '../../ui/badge.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import { COLUMNS as CSV_COLUMNS, type Finding } from './check.ts'
import * as copy from './check-copy.ts'
import type { CheckReport, FileReport } from './check-worker.ts'

const LEVELS: Readonly<Record<Finding['level'], Level>> = { error: 'crit', warn: 'warn', info: 'info' }
const ORDER: readonly Finding['level'][] = ['error', 'warn', 'info']

const COLUMNS: readonly Column<Finding>[] = [
  {
    id: 'level',
    header: copy.findingsTable.level,
    cell: ({ level }) => <Badge level={LEVELS[level]}>{level}</Badge>,
    width: '6rem',
  },
  { id: 'file', header: copy.findingsTable.file, rank: 2, cell: ({ file }) => file, width: '7rem' },
  {
    id: 'finding',
    header: copy.findingsTable.finding,
    rowHeader: true,
    cell: ({ kind }) => (
      <>
        <span className="font-medium">{copy.findings[kind].text}</span>
        <span className="block text-small text-text-2">{copy.findings[kind].action}</span>
      </>
    ),
  },
  { id: 'count', header: copy.findingsTable.count, end: true, cell: (found) => count(found.count), width: '6rem' },
  {
    id: 'line',
    header: copy.findingsTable.firstLine,
    end: true,
    rank: 2,
    cell: ({ line }) => (line === null ? copy.findingsTable.lineUnknown : count(line)),
    width: '7rem',
  },
  {
    id: 'example',
    header: copy.findingsTable.example,
    rank: 3,
    cell: ({ example }) => <code className="break-all font-mono">{example}</code>,
  },
]

/** @param sample description of the checked sample; '' when all rows were checked */
export function Findings({ report, sample }: { report: CheckReport; sample: string }) {
  const findings = report.files
    .flatMap((file) => file.findings)
    .sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level) || b.count - a.count)
  const errors = findings.filter(({ level }) => level === 'error').reduce((sum, found) => sum + found.count, 0)
  const rows = report.files.reduce((sum, file) => sum + file.rows, 0)
  const isSample = sample !== ''
  return (
    <div className="flex flex-col gap-2">
      <p className={errors > 0 ? 'flex items-center gap-2 text-crit' : 'flex items-center gap-2 text-ok'} role="status">
        <Icon name={errors > 0 ? 'octagon' : 'check'} />
        {copy.check.result(errors, rows, isSample)} {sample}
        {report.stopped && copy.check.stopped}
      </p>
      {findings.length > 0 && (
        <Table
          label={copy.findingsTable.title}
          rows={findings}
          columns={COLUMNS}
          rowKey={({ file, kind }) => `${file} ${kind}`}
          rowProps={({ kind, level }) => ({ 'data-finding': kind, 'data-level': level })}
          card={FindingCard}
        />
      )}
    </div>
  )
}

/** A finding on narrow screens. */
function FindingCard({ file, kind, level, count: many, line, example }: Finding) {
  return (
    <div className="flex flex-col gap-1">
      <p className="flex flex-wrap items-center gap-2">
        <Badge level={LEVELS[level]}>{level}</Badge>
        <span className="font-medium">{copy.findings[kind].text}</span>
      </p>
      <p className="text-small text-text-2">
        {copy.findingsTable.card(many, file, line === null ? undefined : count(line), copy.findings[kind].action)}
      </p>
      <code className="break-all font-mono text-small">{example}</code>
    </div>
  )
}

export function Previews({ report }: { report: CheckReport }) {
  const [shown, setShown] = useState<string>()
  const current = report.files.find(({ kind }) => kind === shown) ?? report.files[0]
  if (!current) return null
  return (
    <ViewTabs
      label={copy.findingsTable.previews}
      value={current.kind}
      onChange={setShown}
      tabs={report.files.map(({ kind, header }) => ({ id: kind, label: copy.findingsTable.previewTab(kind, header) }))}
    >
      <Preview file={current} />
    </ViewTabs>
  )
}

function Preview({ file }: { file: FileReport }) {
  if (file.preview.length === 0) return <p className="text-text-2">{copy.findingsTable.noRows}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
    <section className="max-h-80 overflow-auto" tabIndex={0} aria-label={copy.findingsTable.preview(file.kind)}>
      <table className="w-full text-table">
        <thead className="sticky top-0 bg-surface">
          <tr className="border-line border-b text-small text-text-2">
            {CSV_COLUMNS[file.kind].map((column) => (
              <th key={column} scope="col" className="px-2 py-1 text-start font-medium">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="font-mono">
          {file.preview.map(({ cells, bad }, row) => (
            <tr key={row} className="border-line border-b last:border-0">
              {cells.map((cell, at) => {
                const isBad = bad.includes(at)
                return (
                  <td
                    key={at}
                    className={
                      isBad ? 'max-w-60 truncate bg-crit-bg px-2 py-0.5 text-crit' : 'max-w-60 truncate px-2 py-0.5'
                    }
                  >
                    {isBad && <Icon name="octagon" size={12} className="me-1 inline" />}
                    {cell}
                    {isBad && <span className="sr-only">{copy.findingsTable.invalid}</span>}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
