/** Names in the system of one shard that the measured components find. */
export const SHARD = 'shard1'
export const ZONE = 'zone1'
export const NODE = 'node-1'
export const BRIDGE = 'bridge-1'
export const ROUTER = 'router-1'
export const SEGMENT = 'paris'
