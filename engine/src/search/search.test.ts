/** Searches at the bounds of each filter, by the kernel and its reference: in a table without bitmaps, and in one that has them. */

import { formatDay, LIMITS, parseDay } from '@vacancy/shared'
import { COMMANDS } from '@vacancy/shared/wire'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'

const TODAY = parseDay('2026-11-20') as number
const night = (offset: number) => formatDay(TODAY + offset)
const METRES_PER_DEGREE = (Math.PI * LIMITS.earthRadiusMetres) / 180

const PLAIN = {
  ...{ segment: 's', area: 'old town', propertyType: 'hotel', category: 'budget', stars: 3 },
  ...{ amenities: ['pool'], latitude: 45, longitude: 11 },
}
const PROPERTIES: { readonly [id: string]: LooseFields } = {
  plain: {},
  beach: { area: 'beach' },
  villa: { propertyType: 'villa' },
  luxury: { category: 'luxury' },
  stars1: { stars: 1 },
  stars5: { stars: 5 },
  spa: { amenities: ['spa', 'pool'] },
  // 4,999 m and 5,001 m to the north.
  near: { latitude: 45 + 4999 / METRES_PER_DEGREE },
  far: { latitude: 45 + 5001 / METRES_PER_DEGREE },
  elsewhere: { segment: 'other' },
}
const IDS = Object.keys(PROPERTIES).filter((id) => id !== 'elsewhere')
const without = (...ids: string[]) => IDS.filter((id) => !ids.includes(id))

function build(others: number): NodeInMemory {
  const node = createNodeInMemory(TODAY)
  const write = (...[command, fields]: [Parameters<typeof ask>[1], LooseFields]) =>
    expect(ask(node, command, fields).error).toBe('')
  const stay = (propertyId: string, offset: number, differs: LooseFields = {}) =>
    write('SETROOMPKG', {
      ...{ propertyId, roomType: 'double', date: night(offset), availability: 4, finalPrice: 100 },
      rateFeatures: ['wifi'],
      ...differs,
    })
  for (let i = 0; i < others; i++) {
    const away = { area: `a${i % 7}`, propertyType: 'tent', category: 'none', stars: 2, amenities: [], latitude: -30 }
    write('SETPROP', { ...PLAIN, ...away, propertyId: `other${i}` })
    stay(`other${i}`, 0, { availability: 0 })
  }
  for (const [propertyId, differs] of Object.entries(PROPERTIES)) {
    write('SETPROP', { ...PLAIN, ...differs, propertyId })
    for (let offset = 0; offset < 7; offset++) stay(propertyId, offset)
  }
  stay('plain', 1, { availability: 3 })
  stay('beach', 1, { finalPrice: 99 })
  stay('villa', 1, { finalPrice: 101 })
  stay('luxury', 1, { rateFeatures: ['breakfast', 'wifi'] })
  stay('spa', 1, { rateFeatures: [] })
  stay('near', 1, { availability: 255, finalPrice: LIMITS.priceMax })
  stay('far', 1, { finalPrice: 0 })
  write('DELROOMDAY', { propertyId: 'stars1', roomType: 'double', date: night(1) })
  write('SETROOMAVL', { propertyId: 'stars5', roomType: 'double', date: night(1), amount: 0 })
  return node
}

describe.each([
  ['without bitmaps', 0],
  ['with bitmaps', 300],
])('a table %s', (_, others) => {
  let node: NodeInMemory
  beforeAll(() => {
    node = build(others)
  })
  const isOurs = (id: string) => !id.startsWith('other')
  const properties = (fields: LooseFields) => {
    const { error, result } = ask(node, 'SEARCHPROP', { segment: 's', ...fields })
    expect(error).toBe('')
    return (result.propertyIds ?? []).filter(isOurs).sort()
  }
  const stays = (fields: LooseFields) => {
    const { error, result } = ask(node, 'SEARCHAVAIL', {
      segment: 's',
      roomType: 'double',
      dates: [night(1)],
      ...fields,
    })
    expect(error).toBe('')
    return result.properties ?? []
  }
  const found = (fields: LooseFields) =>
    stays(fields)
      .map(({ propertyId }) => propertyId)
      .sort()
  const AVAILABLE = without('stars1', 'stars5').sort()

  test('takes every filter at once: the parameter block has space for all of them', () => {
    const every: LooseFields = {
      ...{ dates: [night(1)], area: 'old town', propertyId: 'plain', propertyType: 'hotel', stars: 3 },
      ...{ category: 'budget', amenities: ['pool'], longitude: 11, latitude: 45, availability: 1, finalPrice: 200 },
      ...{ rateFeatures: ['wifi'], minPrice: 1, minStars: 2, minTotal: 1n, maxTotal: 200n },
    }
    const filters = COMMANDS.SEARCHAVAIL.fields.filter(({ isFilter }) => isFilter).map(({ name }) => name)

    expect(Object.keys(every).sort()).toEqual(filters.sort())
    expect(found(every)).toEqual(['plain'])
  })

  test.each<[LooseFields, string[]]>([
    [{}, IDS],
    [{ segment: 'other' }, ['elsewhere']],
    [{ segment: 'nowhere' }, []],
    [{ area: 'old town' }, without('beach')],
    [{ area: 'beach' }, ['beach']],
    [{ area: 'hotel' }, []],
    [{ propertyType: 'villa' }, ['villa']],
    [{ category: 'luxury' }, ['luxury']],
    [{ category: 'luxury', propertyType: 'villa' }, []],
    [{ stars: 1 }, ['stars1']],
    [{ stars: 5 }, ['stars5']],
    [{ stars: 4 }, []],
    [{ minStars: 1 }, IDS],
    [{ minStars: 3 }, without('stars1')],
    [{ minStars: 4 }, ['stars5']],
    [{ minStars: 4, stars: 3 }, []],
    [{ amenities: ['pool'] }, IDS],
    [{ amenities: ['spa'] }, ['spa']],
    [{ amenities: ['pool', 'spa'] }, ['spa']],
    [{ amenities: ['pool', 'sauna'] }, []],
    [{ latitude: 45, longitude: 11 }, without('far')],
    [{ latitude: 45, longitude: 11, radiusMetres: 4998 }, without('near', 'far')],
    [{ latitude: 45, longitude: 11, radiusMetres: 5002 }, IDS],
    [{ latitude: 45, longitude: -169 }, []],
  ])('finds the properties of %o', (fields, expected) => {
    expect(properties(fields)).toEqual(expected.toSorted())
  })

  test.each<[LooseFields, string[]]>([
    [{}, AVAILABLE],
    [{ roomType: 'single' }, []],
    [{ availability: 3 }, AVAILABLE],
    [{ availability: 4 }, AVAILABLE.filter((id) => id !== 'plain')],
    [{ availability: 5 }, ['near']],
    [{ availability: 255 }, ['near']],
    [{ availability: 0 }, [...AVAILABLE, 'stars5'].sort()],
    [{ finalPrice: 100 }, AVAILABLE.filter((id) => id !== 'villa' && id !== 'near')],
    [{ finalPrice: 99 }, ['beach', 'far']],
    [{ finalPrice: 0 }, ['far']],
    [{ minPrice: 0 }, AVAILABLE],
    [{ minPrice: 1 }, AVAILABLE.filter((id) => id !== 'far')],
    [{ minPrice: 100 }, AVAILABLE.filter((id) => id !== 'far' && id !== 'beach')],
    [{ minPrice: 101 }, ['near', 'villa']],
    [{ minPrice: 101, finalPrice: 101 }, ['villa']],
    [{ minPrice: LIMITS.priceMax }, ['near']],
    [{ minPrice: 101, finalPrice: 100 }, []],
    [{ rateFeatures: ['wifi'] }, AVAILABLE.filter((id) => id !== 'spa')],
    [{ rateFeatures: ['breakfast'] }, ['luxury']],
    [{ rateFeatures: ['wifi', 'breakfast'] }, ['luxury']],
    [{ rateFeatures: ['half_board'] }, []],
    [{ propertyId: 'plain' }, ['plain']],
    [{ propertyId: 'plain', minStars: 4 }, []],
    [{ propertyId: 'stars5' }, []],
    [{ propertyId: 'elsewhere' }, []],
    [{ propertyId: 'unknown' }, []],
    [{ area: 'beach', propertyId: 'beach' }, ['beach']],
    [{ area: 'beach', propertyId: 'plain' }, []],
    [{ minStars: 4 }, []],
  ])('finds the stays of %o', (fields, expected) => {
    expect(found(fields)).toEqual(expected)
  })

  test.each([1, 2, 4, 5, 6, 7])('all of %i nights must be available', (nights) => {
    const later = Array.from({ length: nights }, (_, i) => night(i))
    const expected = nights === 1 ? IDS.toSorted() : AVAILABLE
    expect(found({ dates: later })).toEqual(expected)
    expect(found({ dates: later.toReversed() })).toEqual(expected)
    expect(found({ dates: [...later, night(7)] })).toEqual([])
    // From five nights on, rooms are tested before words.
    const most = nights === 1 ? IDS.toSorted() : AVAILABLE.filter((id) => id !== 'plain')
    expect(found({ dates: later, availability: 4 })).toEqual(most)
  })

  test('a stay has the rooms, price and rate features of each of its nights', () => {
    const [stay] = stays({ propertyId: 'luxury', dates: [night(1), night(0)] })
    expect(stay?.days).toMatchObject([
      { availability: 4, finalPrice: 100, rateFeatures: ['wifi'] },
      {
        availability: 4,
        finalPrice: 100,
        rateFeatures: SAMPLE_CODECS.filter((name) => /^(breakfast|wifi)$/.test(name)),
      },
    ])
    expect(stays({ propertyId: 'near' })[0]?.days).toMatchObject([{ availability: 255, finalPrice: LIMITS.priceMax }])
  })

  test('a limit is reached, not exceeded', () => {
    for (const limit of [1n, 2n, BigInt(AVAILABLE.length), 100n]) {
      expect(stays({ limit })).toHaveLength(Math.min(Number(limit), AVAILABLE.length))
    }
    const { result } = ask(node, 'SEARCHPROP', { segment: 's', limit: 3n })
    expect(result.propertyIds).toHaveLength(3)
  })
})

test('values with any number are found in a table that is rebuilt while it grows', () => {
  const node = createNodeInMemory(TODAY)
  const write = (fields: LooseFields) => expect(ask(node, 'SETPROP', { ...PLAIN, ...fields }).error).toBe('')
  // Areas are numbered in the order of their first use; rebuilding has room for 1,024 numbers at first.
  for (let n = 0; n < 1_025; n++) write({ segment: `elsewhere ${n % 50}`, propertyId: `e${n}`, area: `area ${n}` })
  const AREAS = [0, 1_022, 1_023, 1_024]
  for (let n = 0; n < 600; n++) write({ propertyId: `p${n}`, area: `area ${AREAS[n % AREAS.length]}` })

  for (const [at, area] of AREAS.entries()) {
    const { result } = ask(node, 'SEARCHPROP', { segment: 's', area: `area ${area}` })
    const expected = Array.from({ length: 600 / AREAS.length }, (_, n) => `p${n * AREAS.length + at}`)
    expect(result.propertyIds?.toSorted(), `area ${area}`).toEqual(expected.toSorted())
  }
})
