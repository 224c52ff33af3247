'use client'
/**
 * What the check found, by kind, and the first rows with what is wrong in them (docs/design/control-plane.md#imports).
 */
import type { Level } from '@vacancy/shared/contract'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { count, counted } from '../../lib/format.ts'
import { Badge } from '../../ui/badge.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import { COLUMNS as CSV_COLUMNS, FINDINGS, type Finding } from './check.ts'
import type { CheckReport, FileReport } from './check-worker.ts'

const LEVELS: Readonly<Record<Finding['level'], Level>> = { error: 'crit', warn: 'warn', info: 'info' }
const ORDER: readonly Finding['level'][] = ['error', 'warn', 'info']

const COLUMNS: readonly Column<Finding>[] = [
  { id: 'level', header: 'Level', cell: ({ level }) => <Badge level={LEVELS[level]}>{level}</Badge>, width: '6rem' },
  { id: 'file', header: 'File', rank: 2, cell: ({ file }) => file, width: '7rem' },
  {
    id: 'finding',
    header: 'Finding',
    rowHeader: true,
    cell: ({ kind }) => (
      <>
        <span className="font-medium">{FINDINGS[kind].says}</span>
        <span className="block text-small text-text-2">{FINDINGS[kind].act}</span>
      </>
    ),
  },
  { id: 'count', header: 'Count', end: true, cell: (found) => count(found.count), width: '6rem' },
  {
    id: 'line',
    header: 'First line',
    end: true,
    rank: 2,
    cell: ({ line }) => (line === null ? 'in between' : count(line)),
    width: '7rem',
  },
  {
    id: 'example',
    header: 'Example',
    rank: 3,
    cell: ({ example }) => <code className="break-all font-mono">{example}</code>,
  },
]

export function Findings({ report, looked }: { report: CheckReport; looked: string }) {
  const findings = report.files
    .flatMap((file) => file.findings)
    .sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level) || b.count - a.count)
  const errors = findings.filter(({ level }) => level === 'error').reduce((sum, found) => sum + found.count, 0)
  const rows = report.files.reduce((sum, file) => sum + file.rows, 0)
  const isSample = looked !== ''
  return (
    <div className="flex flex-col gap-2">
      <p className={errors > 0 ? 'flex items-center gap-2 text-crit' : 'flex items-center gap-2 text-ok'} role="status">
        <Icon name={errors > 0 ? 'octagon' : 'check'} />
        {errors > 0 ? `${isSample ? 'At least ' : ''}${counted(errors, 'error')}` : 'No errors'} in{' '}
        {counted(rows, 'row')} {looked}
        {report.stopped && ' (stopped)'}
      </p>
      {findings.length > 0 && (
        <Table
          label="Findings"
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

/** A finding where there is no room for a row. */
function FindingCard({ file, kind, level, count: many, line, example }: Finding) {
  return (
    <div className="flex flex-col gap-1">
      <p className="flex flex-wrap items-center gap-2">
        <Badge level={LEVELS[level]}>{level}</Badge>
        <span className="font-medium">{FINDINGS[kind].says}</span>
      </p>
      <p className="text-small text-text-2">
        {counted(many, 'time')} in {file}
        {line !== null && `, first in line ${count(line)}`}. {FINDINGS[kind].act}
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
      label="First rows of the files"
      value={current.kind}
      onChange={setShown}
      tabs={report.files.map(({ kind, header }) => ({ id: kind, label: `${kind}, header: ${header ? 'yes' : 'no'}` }))}
    >
      <Preview file={current} />
    </ViewTabs>
  )
}

function Preview({ file }: { file: FileReport }) {
  if (file.preview.length === 0) return <p className="text-text-2">There are no rows to show.</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keys.
    <section className="max-h-80 overflow-auto" tabIndex={0} aria-label={`First rows of ${file.kind}`}>
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
                    {isBad && <span className="sr-only"> (wrong)</span>}
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
