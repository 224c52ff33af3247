/** Texts that several pages of shards share. The list and the pages of one shard have their own. */

import { zoneText } from '../../lib/format.ts'

export const common = {
  shards: 'Shards',
  cancel: 'Cancel',
  close: 'Close',
  none: 'none',
  for: 'for',
  timeUnknown: 'time unknown',
  zone: zoneText,
  notReportedBy: (node: string) => `${node} does not report this`,
  lastKnown: ', last known value',
}

export const resolver = {
  query: 'Query resolver',
  queryAgain: 'Query again',
  noResponse: 'no response',
  took: (time: string) => `, ${time},`,
}

export const notFound = {
  title: (kind: string, id: string) => `${kind === 'shard' ? 'Shard' : 'Node'} ${id} not found`,
  text: (kind: string, shard: string | undefined) =>
    `There is no ${kind} with this name${shard === undefined ? '' : ` in shard ${shard}`}. It may not have registered yet, or the URL has a typo.`,
  similar: 'Similar names:',
  openShards: 'Open all shards',
}
