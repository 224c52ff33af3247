/** All planted defects, by what they are planted in. */
import { CLIENT_DEFECTS } from './clients.ts'
import type { Defect } from './defect.ts'
import { FABRIC_DEFECTS } from './fabric.ts'
import { NODE_DEFECTS } from './nodes.ts'
import { QUEUE_DEFECTS } from './queue.ts'
import { RAFT_DEFECTS } from './raft.ts'
import { STORE_DEFECTS } from './store.ts'
import { WAL_DEFECTS } from './wal.ts'

export const DEFECTS: readonly Defect[] = [
  ...RAFT_DEFECTS,
  ...WAL_DEFECTS,
  ...STORE_DEFECTS,
  ...NODE_DEFECTS,
  ...FABRIC_DEFECTS,
  ...QUEUE_DEFECTS,
  ...CLIENT_DEFECTS,
]
