/** An incident note as Markdown: what differs between two moments, and what happened in between. Pure. */
import type { PastChanges } from '@vacancy/shared/contract'
import { clock, utc } from '../../lib/format.ts'
import * as copy from './copy.ts'

export function incidentNote(
  shard: string | undefined,
  { from, to, changes, events, more }: PastChanges,
  url: string,
): string {
  const isOneDay = from.slice(0, 10) === to.slice(0, 10)
  const timeText = (at: string) => (isOneDay ? clock(at) : `${at.slice(0, 10)} ${clock(at)}`)
  return [
    `# ${copy.note.title(shard ?? copy.note.cluster)}`,
    '',
    copy.note.range(utc(from), utc(to)),
    '',
    `## ${copy.note.differences}`,
    '',
    ...(changes.length === 0 ? [copy.note.none] : changes.map(({ message }) => `- ${escaped(message)}`)),
    '',
    `## ${copy.note.timeline}`,
    '',
    ...(events.length === 0
      ? [copy.note.none]
      : [
          copy.note.head,
          '|---|---|---|---|',
          ...events.map(
            ({ at, shard, node, message }) =>
              `| ${timeText(at)} | ${escaped(shard)} | ${escaped(node ?? '')} | ${escaped(message)} |`,
          ),
        ]),
    ...(more ? ['', copy.note.more] : []),
    '',
    copy.note.link(url),
    '',
  ].join('\n')
}

/** Text of the cluster is never markup. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*_|<>[\]]/g, (character) => `\\${character}`).replaceAll(/\s+/g, ' ')
}
