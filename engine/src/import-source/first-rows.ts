/** The first rows of a table as `--dry-run` shows them: as cells of the CSV file, and what is wrong with them. */

import { closeSync } from 'node:fs'
import { basename } from 'node:path'
import { type CodecList, IMPORT_COLUMNS, type ImportFileKind } from '@vacancy/shared'
import { cellTexts, createPackageParser, packageFaults, readRecord } from '../import/csv.ts'
import { readProperties } from '../import/properties.ts'
import { type Fault, type Finding, fileFinding, findingOf } from '../import/row-errors.ts'
import { createBlocks, nextBlock, openCsv, openRange } from '../import/split.ts'

const BUFFER_BYTES = 1 << 20

export type FirstRows = { readonly cells: readonly (readonly string[])[]; readonly findings: readonly Finding[] }

/** @param path a file of IMPORT_COLUMNS with a header. @param shown rows whose cells are returned */
export function checkFirstRows(
  kind: ImportFileKind,
  path: string,
  shown: number,
  { codecs, priceDecimals }: { readonly codecs: CodecList; readonly priceDecimals: number },
): FirstRows {
  const file = openCsv(path, kind)
  const name = basename(path)
  const findings: Finding[] = []
  const add = (line: number, fault: Fault) => findings.push(findingOf(name, line, IMPORT_COLUMNS[kind], fault))
  try {
    if (file.fault) return { cells: [], findings: [fileFinding(name, file.fault.kind, file.fault.message)] }
    const blocks = () => createBlocks(file.file, file.path, file.bytes, new Uint8Array(BUFFER_BYTES))
    if (kind === 'properties') readProperties(file, blocks(), { onFault: add, onBlock: () => undefined })
    const parser = createPackageParser(codecs, undefined, priceDecimals)
    const cells: string[][] = []
    const reading = blocks()
    let line = file.firstLine
    openRange(reading, file.dataStart, file.bytes, true)
    while (nextBlock(reading) === 'lines') {
      for (let at = reading.start; at < reading.end; line++) {
        const scanned = readRecord(parser.cells, reading.bytes, at, reading.filled, reading.isLast)
        if (scanned === 'incomplete') {
          reading.end = at
          break
        }
        if (scanned === 'record') {
          if (cells.length < shown) cells.push(cellTexts(parser.cells))
          if (kind === 'packages') for (const fault of packageFaults(parser)) add(line, fault)
        }
        at = parser.cells.next
      }
    }
    return { cells, findings }
  } finally {
    closeSync(file.file)
  }
}
