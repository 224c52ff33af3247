// Checks that documentation links lead somewhere: Markdown links between pages and to files, and references to pages
// in source files, such as `docs/design/consensus.md#membership` or `engine/src/raft/DESIGN.md#simulation`.
import { globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import GithubSlugger from 'github-slugger'

const SKIPPED_FOLDERS = new Set(['node_modules', '.git', '.next', '.turbo', '.vacancy', 'build', 'dist'])
const SOURCES = '**/*.{ts,tsx,mjs,js,css,sh,yml,yaml}'
/** Its fixtures link to pages that do not exist. */
const OWN_TEST = 'scripts/check-links.test.mjs'
/** A page below docs/, or a DESIGN.md: by its path from the root, or from the file when it begins with a dot. */
const REFERENCE =
  /(?<![\w./-])((?:[\w.-]+\/)*docs\/[\w./-]+?\.md|(?:[\w.-]+\/)+DESIGN\.md|DESIGN\.md(?=#))(?:#([\w-]+))?/g

/**
 * Checks every Markdown page and source file under a root.
 *
 * @returns one line for each broken link, and how many links were checked
 */
export function checkLinks(root) {
  const faults = []
  const anchorsOf = createAnchors(root)
  let links = 0
  const check = (file, line, target, anchor, text) => {
    links++
    const place = `${file}:${line}: ${text}`
    if (!exists(root, target)) faults.push(`${place}: ${target} does not exist`)
    else if (anchor && target.endsWith('.md') && !anchorsOf(target).has(anchor))
      faults.push(`${place}: ${target} has no heading #${anchor}`)
  }
  for (const file of filesOf(root, '**/*.md')) {
    for (const { line, url } of linksOf(readFileSync(path.join(root, file), 'utf8'))) {
      if (/^[a-z][a-z+.-]*:/i.test(url)) continue
      const [name = '', anchor] = url.split('#')
      const target = name === '' ? file : path.posix.join(path.posix.dirname(file), decodeURI(name))
      check(file, line, target, anchor, url)
    }
  }
  for (const file of filesOf(root, SOURCES)) {
    if (file === OWN_TEST) continue
    for (const { line, page, anchor } of referencesOf(readFileSync(path.join(root, file), 'utf8'))) {
      const isBeside = page.startsWith('.') || page === 'DESIGN.md'
      const target = isBeside ? path.posix.join(path.posix.dirname(file), page) : page
      check(file, line, target, anchor, anchor ? `${page}#${anchor}` : page)
    }
  }
  return { faults, links }
}

function filesOf(root, pattern) {
  const exclude = (name) => SKIPPED_FOLDERS.has(path.basename(name))
  return globSync(pattern, { cwd: root, exclude })
    .map((file) => file.replaceAll(path.sep, '/'))
    .sort()
}

function exists(root, target) {
  return !target.startsWith('..') && statSync(path.join(root, target), { throwIfNoEntry: false }) !== undefined
}

/** Links and images of a page, without code. */
export function linksOf(markdown) {
  const found = []
  for (const [at, text] of proseLines(markdown)) {
    const prose = text.replaceAll(/`[^`]*`/g, (code) => ' '.repeat(code.length))
    const add = ([, url]) => found.push({ line: at + 1, url })
    for (const link of prose.matchAll(/\]\(<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)?)>?(?:\s+["'][^)]*)?\)/g)) add(link)
    for (const definition of prose.matchAll(/^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)/g)) add(definition)
    for (const tag of prose.matchAll(/<(?:a|img|source)\b[^>]*?\s(?:href|src|srcset)="([^"\s]+)"/g)) add(tag)
  }
  return found
}

function referencesOf(source) {
  return source
    .split('\n')
    .flatMap((text, at) => [...text.matchAll(REFERENCE)].map(([, page, anchor]) => ({ line: at + 1, page, anchor })))
}

/** Lines outside fenced code, with their numbers. */
function* proseLines(markdown) {
  let fence = ''
  for (const [at, text] of markdown.split('\n').entries()) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(text)?.[1] ?? ''
    if (fence === '' && mark !== '') fence = mark
    else if (fence !== '' && mark.startsWith(fence)) fence = ''
    else if (fence === '') yield [at, text]
  }
}

/** The anchors that GitHub gives the headings of a page. */
export function headingsOf(markdown) {
  const slugger = new GithubSlugger()
  const anchors = new Set()
  for (const [, text] of proseLines(markdown)) {
    const heading = /^ {0,3}#{1,6}\s+(.*?)\s*#*$/.exec(text)?.[1]
    if (heading !== undefined) anchors.add(slugger.slug(plainText(heading)))
    for (const [, id] of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(id)
  }
  return anchors
}

function plainText(heading) {
  return heading
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/[`*]/g, '')
}

function createAnchors(root) {
  const known = new Map()
  return (page) => {
    const anchors = known.get(page) ?? headingsOf(readFileSync(path.join(root, page), 'utf8'))
    known.set(page, anchors)
    return anchors
  }
}

if (process.argv[1] === import.meta.filename) {
  const { faults, links } = checkLinks(path.resolve(import.meta.dirname, '..'))
  for (const fault of faults) console.error(fault)
  console.log(`links: ${links} checked, ${faults.length} broken`)
  process.exitCode = faults.length > 0 || links === 0 ? 1 : 0
}
