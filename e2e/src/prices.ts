/** Replies of nodes over the wire protocol for rows of packages.csv. */

import { connect } from '@vacancy/client'
import type { StackNode } from './stack.ts'

const DEADLINE_MS = 30_000

/** The price of each row's package on this node. */
export async function pricesAt({ tcp }: StackNode, rows: readonly string[]): Promise<number[]> {
  const [host = '', port = ''] = tcp.split(':')
  const client = await connect({ host, port: Number(port) })
  try {
    const nights = rows.map(async (row) => {
      const [propertyId = '', roomType = '', date = ''] = row.split(',')
      const { finalPrice } = await client.send(
        'GETPROPROOMDAY',
        { propertyId, roomType, date },
        { deadlineMs: DEADLINE_MS },
      )
      return finalPrice
    })
    return await Promise.all(nights)
  } finally {
    await client.close()
  }
}
