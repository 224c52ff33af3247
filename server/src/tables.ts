/** Every table of the control plane: each area declares its own beside its code. */
import type { AccessTables } from './access-tables.ts'
import type { ClusterTables } from './cluster/tables.ts'
import type { ImportTables } from './imports/tables.ts'
import type { PlaygroundTables } from './inventory/tables.ts'

export type Tables = AccessTables & ClusterTables & ImportTables & PlaygroundTables
