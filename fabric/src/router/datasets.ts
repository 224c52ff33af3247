/**
 * What a router knows from the registry, as fetched, and the table derived from it. Pure: no sockets, clock or
 * randomness.
 */

export type RouterMode = 'edge' | 'zone'

/**
 * Where requests of a segment go.
 *
 * - `hops`: ids of zone routers (edge) or of bridges (zone), at least one, sorted. `via` is the zone or the shard.
 * - `unknown`: the tables are loaded and have no route: 404.
 * - `no_hops`: the route is known, but no router or bridge of it is registered: 503.
 * - `unloaded`: no table was ever loaded: 503.
 */
export type Lookup =
  | { readonly kind: 'hops'; readonly via: string; readonly hops: readonly string[] }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'no_hops'; readonly via: string }
  | { readonly kind: 'unloaded' }

/** One row of the reply to GETSEGMENTS. `count` is 0 where the registry reports none. */
export type SegmentCount = { readonly name: string; readonly count: number }
