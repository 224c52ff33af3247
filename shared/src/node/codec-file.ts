/** The file with the codec list: of a standalone node, and of the registry, from which all others have it. */

import { existsSync, readFileSync } from 'node:fs'
import { type CodecList, createCodecList } from '../codecs.ts'
import { VacancyError } from '../errors.ts'
import { readYamlKeys } from './yaml.ts'

/**
 * Reads `rate_features` of a codec file; other keys are ignored (platform.md §2.5).
 *
 * @param flag the one that names the file, for the error when it is not there
 * @throws VacancyError invalid_config when the file cannot be read, invalid_codecs naming the entry
 */
export function loadCodecFile(file: string, flag: string): CodecList {
  if (!existsSync(file)) throw invalid(`${file}: does not exist; name the codec file with --${flag}`)
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (cause) {
    throw invalid(`${file}: cannot be read: ${(cause as Error).message}`, cause)
  }
  return parseCodecFile(source, file)
}

/**
 * The same of text that is there already.
 *
 * @param file what it is called in errors
 */
export function parseCodecFile(source: string, file: string): CodecList {
  const faults: string[] = []
  const keys = readYamlKeys(source, file, faults)
  if (faults.length > 0) throw invalid(faults.join('\n'))
  const entries = keys.find(({ key }) => key === 'rate_features')
  if (!entries) throw invalid(`${file}: rate_features: is missing; it lists 1 to 24 rate features`)
  if (!Array.isArray(entries.value))
    throw invalid(`${file}:${entries.line}: rate_features: must be a list of rate features`)
  return createCodecList(entries.value)
}

function invalid(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('invalid_config', { reason }, { cause })
}
