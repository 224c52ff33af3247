/** Opens the playground with a search for a segment, or for the nights of a property. */
import type { JsonFields } from '@vacancy/shared/wire'
import type { SegmentFilters } from './queries.ts'

type Command = 'SEARCHPROP' | 'SEARCHAVAIL'

/** The code of the playground is loaded on demand. */
async function open(shard: string, command: Command, fields: JsonFields): Promise<void> {
  const { openInPlayground } = await import('../playground/links.ts')
  await openInPlayground({ shard, node: '', command, fields }, { run: true })
}

export async function querySegment(shard: string, segment: string, filters: SegmentFilters): Promise<void> {
  const { area, type, category, stars, amenity } = filters
  await open(shard, 'SEARCHPROP', {
    segment,
    ...(area && { area }),
    ...(type && { propertyType: type }),
    ...(category && { category }),
    ...(stars && { minStars: Number(stars) }),
    ...(amenity && { amenities: [amenity] }),
  })
}

export async function queryNights(
  shard: string,
  { segment, propertyId, roomType, dates }: { segment: string; propertyId: string; roomType: string; dates: string[] },
): Promise<void> {
  await open(shard, 'SEARCHAVAIL', { segment, roomType, dates, propertyId, explain: 2 })
}
