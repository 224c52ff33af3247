/** The manual page vacancy(1), made from the tables of --help. */

import { type CommandSpec, type Flags, flagRows } from '@vacancy/shared/node'
import type { Described } from './completion.ts'

/** A line of text: escapes are shown, a dash is one that can be copied, and no line begins a request. */
const plain = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
const bold = (text: string): string => `\\fB${plain(text)}\\fR`
const italic = (text: string): string => `\\fI${plain(text)}\\fR`

/** A paragraph with a tag before it. */
const tagged = (tag: string, text: string): string[] => ['.TP', tag, plain(text)]

/**
 * @param described all subcommands
 * @param release its version, and its day as YYYY-MM-DD
 */
export function manPageOf(
  { summaries, commands }: Described,
  release: { readonly version: string; readonly day: string },
): string {
  const { version, day } = release
  return [
    '.\\" Made by `npm run dist` from the tables of --help.',
    `.TH VACANCY 1 "${day}" "Vacancy ${version}" "Vacancy"`,
    '.SH NAME',
    'vacancy \\- finds and sells free hotel rooms',
    '.SH SYNOPSIS',
    `${bold('vacancy')} ${italic('subcommand')} [${italic('flags')}]`,
    '.br',
    `${bold('vacancy')} ${bold('--version')}`,
    '.SH SUBCOMMANDS',
    ...Object.entries(summaries).flatMap(([word, summary]) => tagged(bold(word), summary)),
    '.SH FLAGS',
    'Each subcommand has \\fB\\-\\-help\\fR, which prints its part of this page, and \\fB\\-\\-version\\fR.',
    'A flag is also an environment variable: \\fB\\-\\-data\\-dir\\fR of \\fBvacancy run\\fR is \\fBVACANCY_RUN_DATA_DIR\\fR.',
    ...commands.flatMap(sectionOf),
    '.SH FILES',
    ...tagged(bold('vacancy.yml'), 'Configuration: --config, else ./vacancy.yml, else /etc/vacancy/vacancy.yml.'),
    ...tagged(bold('codecs.yml'), 'The rate features, in the order of their bits.'),
    '.SH EXIT STATUS',
    plain('0 for success, 64 for a wrong flag; docs/reasons.md explains the others.'),
    '',
  ].join('\n')
}

function sectionOf(command: CommandSpec<Flags>): string[] {
  const { name, summary, operands } = command
  const operand = operands ? ` ${operands.min > 0 ? operands.name : `[${operands.name}]`}` : ''
  const rows = flagRows(command).filter(({ flag }) => flag !== 'help' && flag !== 'version')
  return [
    `.SS ${plain(`${name}${operand}`)}`,
    plain(summary),
    ...(operands ? tagged(italic(operands.name), operands.summary) : []),
    ...rows.flatMap(({ flag, placeholder, summary: text, notes }) =>
      tagged(
        `${bold(`--${flag}`)}${placeholder === '' ? '' : ` ${italic(placeholder)}`}`,
        `${text}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`,
      ),
    ),
  ]
}
