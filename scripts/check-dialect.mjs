// Counts words that are not the field's language (docs/design/README.md#words) in every tracked text. The number of
// each may fall, never rise: `node scripts/check-dialect.mjs --write` records the present ones in scripts/dialect.txt.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const LIST = 'scripts/dialect.txt'
const TEXTS = /[.](?:tsx?|mjs|js|css|md|json|ya?ml)$/
/** Golden frames, recorded results and generated contracts are data; the list itself and this check name the words. */
const SKIPPED =
  /^(?:shared\/vectors\/|bench\/results\/|docs\/results\/|docs\/openapi\/|package-lock[.]json$|scripts\/check-dialect)/

/** @returns how often each word occurs in a text, parts of camelCase names included */
export function countWords(text, words) {
  const plain = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  return new Map(words.map((word) => [word, [...plain.matchAll(new RegExp(`\\b${word}\\b`, 'g'))].length]))
}

/** @returns the words of a list with the number of each that is allowed, by word */
export function parseList(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const [, word, limit] = /^(.+?)\s+(\d+)$/.exec(line) ?? []
      if (word === undefined) throw new Error(`${LIST}: not a word and a number: ${line}`)
      return [word, Number(limit)]
    }),
  )
}

/** @returns one line for each word that occurs more often than its limit, and the counts */
export function checkDialect(root) {
  const limits = parseList(readFileSync(path.join(root, LIST), 'utf8'))
  const words = [...limits.keys()]
  const counts = new Map(words.map((word) => [word, 0]))
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 }).split('\0')
  for (const file of files) {
    if (!TEXTS.test(file) || SKIPPED.test(file)) continue
    for (const [word, count] of countWords(readIfThere(path.join(root, file)), words)) {
      counts.set(word, counts.get(word) + count)
    }
  }
  const faults = words
    .filter((word) => counts.get(word) > limits.get(word))
    .map((word) => `"${word}" occurs ${counts.get(word)} times; the limit is ${limits.get(word)}`)
  return { faults, counts }
}

/** A file that was deleted and is not committed yet has no text. */
function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return ''
    throw error
  }
}

if (import.meta.main) {
  const root = path.resolve(import.meta.dirname, '..')
  const { faults, counts } = checkDialect(root)
  if (process.argv.includes('--write')) {
    const file = path.join(root, LIST)
    const comments = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('#'))
    writeFileSync(file, `${[...comments, ...[...counts].map(([word, count]) => `${word} ${count}`)].join('\n')}\n`)
  } else {
    for (const fault of faults) process.stderr.write(`dialect: ${fault}\n`)
    const sum = [...counts.values()].reduce((a, b) => a + b, 0)
    process.stdout.write(`dialect: ${sum} words left, ${faults.length} over their limit\n`)
    if (faults.length > 0) process.exitCode = 1
  }
}
