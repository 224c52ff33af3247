/** The codec list file, of a standalone node or of the registry, which distributes it. */

import { existsSync } from 'node:fs'
import { type CodecList, createCodecList } from '../codecs.ts'
import { VacancyError } from '../errors.ts'
import { readText } from './watch.ts'
import { readYamlKeys } from './yaml.ts'

/**
 * Reads `rate_features` of a codec file; other keys are ignored (docs/design/http.md#codec-list).
 *
 * @param flag the flag that names the file, for the error when the file does not exist
 * @throws VacancyError invalid_config when the file cannot be read, invalid_codecs naming the entry
 */
export function loadCodecFile(file: string, flag: string): CodecList {
  if (!existsSync(file)) throw invalid(`${file}: does not exist. Name the codec file with --${flag}`)
  return parseCodecFile(readText(file, 'invalid_config'), file)
}

/**
 * The same, for the text of a codec file.
 *
 * @param file its name in errors
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

function invalid(reason: string): VacancyError {
  return new VacancyError('invalid_config', { reason })
}
