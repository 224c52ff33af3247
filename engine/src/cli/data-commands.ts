/** Commands for the data of a stopped node: `vacancy inspect`, `export` and `quarantine`. */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import {
  compareSnapshotFiles,
  exportDirectory,
  inspectDirectory,
  inspectSnapshotFile,
  quarantine,
} from './operations.ts'

const isFileAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

const PATH = { name: 'PATH', min: 1, max: 1, summary: 'The data directory, or a snapshot file.' } as const
const DIRECTORY = { name: 'DIR', min: 1, max: 1, summary: 'The data directory.' } as const

export const inspectCommand = defineCommand({
  name: 'vacancy inspect',
  component: 'INSPECT',
  summary: 'Describes a data directory or a snapshot file and reports damage. Changes nothing.',
  flags: {
    json: { type: 'boolean', summary: 'One JSON document instead of text.' },
    against: {
      type: 'text',
      value: 'FILE',
      summary: 'Lists the properties that were removed, added and changed from one snapshot file to another.',
    },
  },
  operands: PATH,
  run: async ({ flags, operands }) => {
    const path = operands[0]
    const isFile = isFileAt(path)
    if (flags.against !== undefined && !(isFile && isFileAt(flags.against))) {
      throw new VacancyError('usage_error', { reason: '--against compares two snapshot files' })
    }
    const inspect = isFile ? inspectSnapshotFile : inspectDirectory
    const { lines, document, isDamaged } =
      flags.against === undefined ? inspect(path) : compareSnapshotFiles(path, flags.against)
    // The counters of a snapshot are one line: there are many, by segment and day.
    const documentText = JSON.stringify(document, undefined, isFile ? undefined : 2)
    process.stdout.write(flags.json ? `${documentText}\n` : `${lines.join('\n')}\n`)
    return isDamaged ? EXIT.corruption : EXIT.ok
  },
})

export const exportCommand = defineCommand({
  name: 'vacancy export',
  component: 'EXPORT',
  summary: 'Creates one snapshot file of a data directory as a backup. The node must be stopped.',
  flags: {
    'output-path': { type: 'text', value: 'DIR', default: '.', summary: 'Folder that seed.snapshot is written into.' },
    'accept-loss': {
      type: 'boolean',
      summary: 'Exports the valid part of damaged data, sets the rest aside as run does, and prints the loss.',
    },
  },
  operands: DIRECTORY,
  run: async ({ flags, operands }) => {
    const exported = await exportDirectory(operands[0], flags.outputPath, flags.acceptLoss)
    for (const line of exported.lost) process.stderr.write(`vacancy export: ${line}\n`)
    process.stdout.write(
      `${join(flags.outputPath, 'seed.snapshot')}: snapshot ${exported.snapshotId} of shard ${exported.shardId}, ` +
        `${exported.packages} packages of ${exported.properties} properties, ${exported.bytes} bytes\n`,
    )
    return EXIT.ok
  },
})

export const quarantineCommand = defineCommand({
  name: 'vacancy quarantine',
  component: 'QUARANTINE',
  summary:
    'Manages data set aside: list, restore NAME, remove NAME, or accept NAME, which ends the reason codecs_changed. Restore and remove need a stopped node.',
  flags: { 'data-dir': { type: 'text', value: 'DIR', default: './data', summary: 'The data directory.' } },
  operands: { name: 'list|restore NAME|remove NAME|accept NAME', min: 1, max: 2, summary: 'The action and its entry.' },
  run: async ({ flags, operands }) => {
    const lines = quarantine(flags.dataDir, operands[0], operands[1])
    process.stdout.write(lines.length === 0 ? 'no data set aside\n' : `${lines.join('\n')}\n`)
    return EXIT.ok
  },
})
