/** `vacancy completion`: scripts that complete subcommands, flags and their values, made from the tables of --help. */

import { EXIT, VacancyError } from '@vacancy/shared'
import { type Command, type CommandSpec, defineCommand, type Flags, flagRows, runCommand } from '@vacancy/shared/node'

/** All subcommands of the program: what the first words mean, and the tables of those with flags. */
export type Described = {
  readonly summaries: { readonly [word: string]: string }
  readonly commands: readonly CommandSpec<Flags>[]
}

type FlagValue = { readonly flag: string; readonly summary: string; readonly value: Value }
/** `none` for a switch. */
type Value =
  | { readonly kind: 'none' | 'files' | 'folders' | 'other' }
  | { readonly kind: 'words'; readonly words: Words }
type Words = readonly string[]

/** What may follow the words of a command, such as `quickstart up`; '' is the program itself. */
type Node = {
  readonly words: readonly { readonly word: string; readonly summary: string }[]
  readonly flags: readonly FlagValue[]
}

const PROGRAM = 'vacancy'
const FILES = /(?:^|-)(?:file|path|cert|key|ca)$/
const FOLDERS = /(?:^|-)(?:dir|folder)$/

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const

/** Each command line by its words without the program. */
function nodesOf({ summaries, commands }: Described): ReadonlyMap<string, Node> {
  const nodes = new Map<string, Node>()
  const first = Object.entries(summaries).map(([word, summary]) => ({ word, summary }))
  nodes.set('', { words: first, flags: [] })
  for (const command of commands) {
    const [, ...words] = command.name.split(' ')
    const [group = '', word] = words
    if (word !== undefined) {
      const above = nodes.get(group) ?? { words: [], flags: [] }
      nodes.set(group, { ...above, words: [...above.words, { word, summary: command.summary }] })
    }
    const key = words.join(' ')
    nodes.set(key, {
      words: [...(nodes.get(key)?.words ?? []), ...operandWords(command)],
      flags: flagRows(command).map(({ flag, placeholder, summary, words: values }) => ({
        flag,
        summary,
        value: typedValue(flag, placeholder, values),
      })),
    })
  }
  return nodes
}

/** The words of operands such as `list|restore NAME`. */
function operandWords({ operands }: CommandSpec<Flags>): Node['words'] {
  const words = (operands?.name ?? '').split('|').map((each) => each.split(' ')[0] ?? '')
  return words.length < 2 ? [] : words.filter((word) => /^[a-z]+$/.test(word)).map((word) => ({ word, summary: '' }))
}

function typedValue(flag: string, placeholder: string, words: Words): Value {
  if (words.length > 0) return { kind: 'words', words }
  if (placeholder === '') return { kind: 'none' }
  if (placeholder === 'DIR' || (placeholder === 'TEXT' && FOLDERS.test(flag))) return { kind: 'folders' }
  if (placeholder === 'FILE' || (placeholder === 'TEXT' && FILES.test(flag))) return { kind: 'files' }
  return { kind: 'other' }
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const listed = (words: Words) => quoted(words.filter((word) => word !== '').join(' '))

function bashCompletion(nodes: ReadonlyMap<string, Node>): string {
  const paths = [...nodes.keys()].filter((key) => key !== '').map(quoted)
  const cases = [...nodes].map(([key, { words, flags }]) => {
    const [below, own] = [words.map(({ word }) => word), flags.map(({ flag }) => `--${flag}`)]
    return `    ${quoted(key)}) words=${listed(below)} flags=${listed(own)} ;;`
  })
  const patterns = (kind: Value['kind']) =>
    [...nodes].flatMap(([key, { flags }]) =>
      flags.filter(({ value }) => value.kind === kind).map(({ flag }) => quoted(`${key} --${flag}`)),
    )
  const choices = [...nodes].flatMap(([key, { flags }]) =>
    flags.flatMap(({ flag, value }) =>
      value.kind === 'words' ? [`    ${quoted(`${key} --${flag}`)}) words=${listed(value.words)} ;;`] : [],
    ),
  )
  const arm = (kind: Value['kind'], action: string) => {
    const found = patterns(kind)
    return found.length === 0 ? [] : [`    ${found.join('|')}) ${action} ;;`]
  }
  return `# bash completion of ${PROGRAM}. Put it where bash-completion looks, or: source <(${PROGRAM} completion bash)
_${PROGRAM}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}" command='' words='' flags='' i next
  # --flag=value is three words.
  if [ "$cur" = '=' ]; then cur=''
  elif [ "$before" = '=' ]; then before="\${COMP_WORDS[COMP_CWORD - 2]}"; fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${command:+$command }\${COMP_WORDS[i]}"
    case "$next" in
    ${paths.join('|')}) command="$next" ;;
    *) break ;;
    esac
  done
  case "$command $before" in
${[...choices, ...arm('folders', 'COMPREPLY=($(compgen -d -- "$cur")); return'), ...arm('files', 'COMPREPLY=($(compgen -f -- "$cur")); return'), ...arm('other', 'return')].join('\n')}
    *)
      case "$command" in
${cases.map((line) => `  ${line}`).join('\n')}
      esac ;;
  esac
  case "$cur" in
  -*) words="$words $flags" ;;
  *) words="\${words:-$flags}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _${PROGRAM} ${PROGRAM}
`
}

/** Brackets and colons end a description in zsh. */
const plain = (text: string) => text.replaceAll(/[[\]:\\]/g, (sign) => `\\${sign}`)

function zshCompletion(nodes: ReadonlyMap<string, Node>): string {
  const action = (value: Value) => {
    if (value.kind === 'words') return `:value:(${value.words.filter((word) => word !== '').join(' ')})`
    if (value.kind === 'files') return ':file:_files'
    if (value.kind === 'folders') return ':folder:_files -/'
    return value.kind === 'none' ? '' : ':value: '
  }
  const functions = [...nodes].map(([key, { words, flags }]) => {
    const specs = flags.map(({ flag, summary, value }) =>
      quoted(`--${flag}${value.kind === 'none' ? '' : '='}[${plain(summary)}]${action(value)}`),
    )
    const rows = words.map(({ word, summary }) => quoted(`${word}:${summary}`))
    const groups = words.filter(({ word }) => nodes.has(key === '' ? word : `${key} ${word}`))
    const below = groups.map(({ word }) => `      ${word}) ${nameOf(key === '' ? word : `${key} ${word}`)} ;;`)
    const operands = words.length === 0 ? [quoted('*:file:_files')] : [quoted('1: :->word'), quoted('*:: :->rest')]
    return `${nameOf(key)}() {
  local curcontext="$curcontext" state line
  _arguments -C \\
    ${[...specs, ...operands].join(' \\\n    ')}
  case $state in
    word) local -a words_here; words_here=(${rows.join(' ')}); _describe command words_here ;;
    rest)
      case $line[1] in
${[...below, '      *) _files ;;'].join('\n')}
      esac ;;
  esac
}`
  })
  return `#compdef ${PROGRAM}
# zsh completion of ${PROGRAM}. Save it as _${PROGRAM} in a folder of $fpath.
${functions.join('\n')}
if [ "$funcstack[1]" = _${PROGRAM} ]; then _${PROGRAM} "$@"; else compdef _${PROGRAM} ${PROGRAM}; fi
`
}

const nameOf = (key: string) => `_${[PROGRAM, ...key.split(/[ -]/)].filter((word) => word !== '').join('_')}`

function fishCompletion(nodes: ReadonlyMap<string, Node>): string {
  const lines = [...nodes].flatMap(([key, { words, flags }]) => {
    const under = `-n ${quoted(`__${PROGRAM}_is ${quoted(key).replaceAll("'", '"')}`)}`
    const start = `complete -c ${PROGRAM} ${under}`
    return [
      ...words.map(
        ({ word, summary }) => `${start} -f -a ${word}${summary === '' ? '' : ` -d ${fishQuoted(summary)}`}`,
      ),
      ...flags.map(({ flag, summary, value }) => {
        const given = { none: '', files: ' -r -F', folders: " -x -a '(__fish_complete_directories)'", other: ' -x' }
        const values = value.kind === 'words' ? ` -x -a ${listed(value.words)}` : given[value.kind]
        return `${start} -l ${flag}${values} -d ${fishQuoted(summary)}`
      }),
    ]
  })
  const paths = [...nodes.keys()].filter((key) => key !== '').map(quoted)
  return `# fish completion of ${PROGRAM}. Save it as ~/.config/fish/completions/${PROGRAM}.fish
function __${PROGRAM}_is
  set -l found
  for word in (commandline -opc)[2..-1]
    set -l next (string join ' ' $found $word)
    contains -- $next ${paths.join(' ')}; or break
    set found $found $word
  end
  test (string join ' ' $found) = "$argv[1]"
end
${lines.join('\n')}
`
}

const fishQuoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** The script of a shell. */
export function completionOf(shell: keyof typeof SHELLS, described: Described): string {
  return SHELLS[shell](nodesOf(described))
}

const isShell = (text: string): text is keyof typeof SHELLS => Object.hasOwn(SHELLS, text)

const completionCommand = (describe: () => Promise<Described>): Command =>
  defineCommand({
    name: 'vacancy completion',
    component: 'COMPLETION',
    summary: 'Prints a script that completes subcommands, flags and values.',
    flags: {},
    operands: { name: Object.keys(SHELLS).join('|'), min: 1, max: 1, summary: 'The shell.' },
    run: async ({ operands: [shell = ''] }) => {
      if (!isShell(shell)) {
        const known = Object.keys(SHELLS).join(', ')
        throw new VacancyError('usage_error', { reason: `${JSON.stringify(shell)} is not one of ${known}` })
      }
      process.stdout.write(completionOf(shell, await describe()))
      return EXIT.ok
    },
  })

/** The table without what it describes. */
export const COMPLETION_COMMAND = completionCommand(() => Promise.reject(new Error('it describes nothing')))

/** Runs the command; sets the exit code. */
export async function completionMain(args: readonly string[], describe: () => Promise<Described>): Promise<void> {
  await runCommand(completionCommand(describe), args)
}
