/** The queue as the control plane mounts it. */
export { QUEUE_METRICS } from './metrics.ts'
export type { Partition } from './partition.ts'
export {
  CONSUMER_PATH,
  consumerUpgrade,
  endsOf,
  putProducersInFront,
  type QueueNode,
  startQueue,
  stopQueue,
  unavailability,
} from './queue-node.ts'
export { allTopicStats, queueModule } from './routes.ts'
export { QUEUE_ROLES, type QueueRole, type QueueToken } from './tokens.ts'
