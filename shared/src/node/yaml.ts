/** Parses the YAML files of operators: one top-level mapping, with the line of every key. */

import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml'

/** Far above any real configuration, codec list or auth file. */
const YAML_BYTES_MAX = 4 * 1024 * 1024
/** Aliases that a value may expand. More indicates an expansion attack. */
const ALIASES_MAX = 100

export type YamlKey = { readonly key: string; readonly line: number; readonly value: unknown }
export type YamlEntry = { readonly line: number; readonly values: { readonly [key: string]: unknown } }

type Reader = {
  readonly file: string
  readonly document: Document
  readonly lines: LineCounter
  readonly faults: string[]
}

/**
 * The keys of a file and their values as plain data. An empty file has none.
 *
 * @param faults receives a line `file:line:column: …` for everything that is not such a mapping
 */
export function readYamlKeys(text: string, file: string, faults: string[]): readonly YamlKey[] {
  const reader = openReader(text, file, faults)
  return reader ? keysOf(reader).map(({ key, line, node }) => ({ key, line, value: plain(reader, line, node) })) : []
}

/**
 * The entries of a file whose only key is a list of mappings.
 *
 * @param faults receives a line for every invalid entry, for other keys, and for a missing key
 */
export function readYamlList(text: string, file: string, name: string, faults: string[]): readonly YamlEntry[] {
  const reader = openReader(text, file, faults)
  if (!reader) return []
  let list: Node | null | undefined
  for (const { key, line, node } of keysOf(reader)) {
    if (key === name) list = node
    else faults.push(`${file}:${line}: ${key}: the file has one key, ${name}`)
  }
  if (!isSeq(list)) {
    faults.push(`${file}: ${name}: ${list === undefined ? 'is missing' : 'must be a list'}`)
    return []
  }
  return list.items.flatMap((item) => {
    const line = lineOf(reader, item as Node)
    if (isMap(item)) return [{ line, values: plain(reader, line, item) as YamlEntry['values'] }]
    faults.push(`${file}:${line}: must be a mapping`)
    return []
  })
}

function openReader(text: string, file: string, faults: string[]): Reader | undefined {
  if (Buffer.byteLength(text) > YAML_BYTES_MAX) {
    faults.push(`${file}: is larger than ${YAML_BYTES_MAX} bytes`)
    return undefined
  }
  const lines = new LineCounter()
  const document: Document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  for (const error of document.errors) {
    const { line, col } = lines.linePos(error.pos[0])
    faults.push(`${file}:${line}:${col}: ${error.message}`)
  }
  return document.errors.length > 0 ? undefined : { file, document, lines, faults }
}

function keysOf(reader: Reader): { key: string; line: number; node: Node | null }[] {
  const { contents } = reader.document
  if (contents === null || (isScalar(contents) && contents.value === null)) return []
  if (!isMap(contents)) {
    reader.faults.push(`${reader.file}:${lineOf(reader, contents)}: must be a mapping of keys to values`)
    return []
  }
  return (contents.items as Pair<Node, Node | null>[]).flatMap(({ key, value }) => {
    const line = lineOf(reader, key)
    if (isScalar(key) && typeof key.value === 'string') return [{ key: key.value, line, node: value }]
    reader.faults.push(`${reader.file}:${line}: a key must be text`)
    return []
  })
}

function plain(reader: Reader, line: number, node: Node | null): unknown {
  try {
    return node === null ? null : node.toJS(reader.document, { maxAliasCount: ALIASES_MAX })
  } catch (error) {
    reader.faults.push(`${reader.file}:${line}: ${(error as Error).message}`)
    return undefined
  }
}

function lineOf(reader: Reader, node: Node): number {
  return reader.lines.linePos(node.range?.[0] ?? 0).line
}
