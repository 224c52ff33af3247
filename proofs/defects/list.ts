/** All planted defects, by what they are planted in. */
import type { Defect } from './defect.ts'
import { FABRIC_DEFECTS } from './fabric.ts'
import { NODE_DEFECTS } from './nodes.ts'
import { QUEUE_DEFECTS } from './queue.ts'
import { RAFT_DEFECTS } from './raft.ts'
import { REPLY_DEFECTS } from './replies.ts'
import { STORE_DEFECTS } from './store.ts'
import { WAL_DEFECTS } from './wal.ts'

export const DEFECTS: readonly Defect[] = [
  ...RAFT_DEFECTS,
  ...WAL_DEFECTS,
  ...STORE_DEFECTS,
  ...NODE_DEFECTS,
  ...FABRIC_DEFECTS,
  ...QUEUE_DEFECTS,
  ...REPLY_DEFECTS,
]
